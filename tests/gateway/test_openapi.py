"""The OpenAPI document follows from what the gateway does, and the page that shows it needs nothing else."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_server import Running, running
from starlette.routing import Router

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.app import make_app
from kestrel_gateway.docs.openapi import document
from kestrel_gateway.docs.pages import FILES, built_in

jsonschema = pytest.importorskip("jsonschema")

# Pages and their files are no API; KServe's is not ours to describe.
NO_API = ("/docs/", "/playground/", "/samples/", "/v2/models/")


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


@pytest.fixture(scope="module")
def api(gateway: Running) -> Any:
    status, found, headers = gateway.get("/openapi.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    return found


def operations(api: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def resolve(api: Any, part: Any) -> Any:
    while isinstance(part, dict) and "$ref" in part:
        at = api
        for key in part["$ref"].removeprefix("#/").split("/"):
            at = at[key]
        part = at
    return part


def check(api: Any, schema: Any, value: Any) -> None:
    jsonschema.Draft202012Validator({**schema, "components": api["components"]}).validate(value)


def test_every_path_is_in_the_document_and_every_path_of_it_exists(gateway: Running, api: Any) -> None:
    router = vars(make_app(gateway.house))["_inside"]
    assert isinstance(router, Router)
    routes = {
        (re.sub(r":\w+}", "}", route.path), method.lower())
        for route in router.routes
        for method in route.methods - {"HEAD"}
        if not route.path.startswith(NO_API) and route.path not in ("/", "/v1/{skill}", "/v2")
    }
    assert {(path, method) for path, method, _ in operations(api)} == routes


def test_all_references_lead_somewhere(api: Any) -> None:
    found = re.findall(r'"\$ref": "([^"]*)"', json.dumps(api))
    assert found
    for target in found:
        assert resolve(api, {"$ref": target}) is not None


def test_every_schema_is_one(api: Any) -> None:
    for path, _, operation in operations(api):
        contents = [operation.get("requestBody", {}).get("content", {})]
        contents += [resolve(api, answer).get("content", {}) for answer in operation["responses"].values()]
        for content in contents:
            for kind, given in content.items():
                assert "schema" in given or path in ("/metrics", "/docs", "/openapi.json"), (path, kind)
                jsonschema.Draft202012Validator.check_schema(given.get("schema", {}))


def test_operations_have_names_of_their_own(api: Any) -> None:
    names = [operation["operationId"] for _, _, operation in operations(api)]
    assert len(set(names)) == len(names)


def test_examples_satisfy_their_schemas_and_are_answered_as_documented(gateway: Running, api: Any) -> None:
    num_tried = 0
    for path, method, operation in operations(api):
        if method == "get":
            continue
        content = operation["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            check(api, content["schema"], example["value"])
            status, answer, _ = gateway.post(path, example["value"])
            assert status == 200, answer
            check(api, operation["responses"]["200"]["content"]["application/json"]["schema"], answer)
            num_tried += 1
    assert num_tried >= 6


def test_what_the_schemas_refuse_is_what_is_wrong(api: Any) -> None:
    body = api["paths"]["/v1/query"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    good = {"question": "?", "settings": None, "stream": None, "spatial_refs": [[0.5, 0.5]]}
    check(api, body, good)
    for wrong in (
        {},
        {"question": " "},
        {"question": None},
        {"question": "?", "temperature_": 1},
        {"question": "?", "settings": {"temperature": -1}},
        {"question": "?", "settings": {"max_tokens": "5"}},
        {"question": "?", "spatial_refs": [[0.5, 0.5, 0.5]]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            check(api, body, wrong)


def test_every_status_of_an_error_is_documented_with_its_codes(api: Any) -> None:
    def tree(kind: type[KestrelError]) -> Iterator[type[KestrelError]]:
        yield kind
        for below in kind.__subclasses__():
            if below.__module__.startswith("kestrel_"):
                yield from tree(below)

    said = {status: answer["description"] for status, answer in api["components"]["responses"].items()}
    for kind in tree(KestrelError):
        if kind.status not in (405, 499) and kind.reason != "bad_checkpoint":
            assert kind.reason in said[str(kind.status)]


def test_a_refusal_is_the_documented_envelope(gateway: Running, api: Any) -> None:
    status, answer, headers = gateway.post("/v1/query", b"{")
    documented = resolve(api, api["paths"]["/v1/query"]["post"]["responses"][str(status)])
    check(api, documented["content"]["application/json"]["schema"], answer)
    assert {name.lower() for name in documented["headers"]} <= headers.keys()


def test_keys_are_required_in_the_document_where_there_are_keys() -> None:
    without, with_keys = (document(built_in(), "m", has_keys) for has_keys in (False, True))
    assert {} in without["paths"]["/v1/query"]["post"]["security"]
    assert {} not in with_keys["paths"]["/v1/query"]["post"]["security"]
    assert with_keys["paths"]["/readyz"]["get"]["security"] == []


def test_a_skill_of_ones_own_is_documented_by_what_it_says_of_itself() -> None:
    from dataclasses import replace

    count = replace(built_in()[2], name="count", meaning="count things", answers="`count`")
    operation = document([count], "m", False)["paths"]["/v1/count"]["post"]
    assert operation["summary"] == "Count things"
    assert "object" in operation["requestBody"]["content"]["application/json"]["schema"]["required"]


def test_the_page_takes_nothing_from_elsewhere(gateway: Running) -> None:
    for path in FILES:
        status, text, headers = gateway.get(path)
        assert status == 200
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert not re.search(r"(?:https?:)?//(?!docs)\w+\.", text), "an address"
        assert not re.search(r"\son\w+=|<style|style=|javascript:|innerHTML|eval\(", text)
