"""OpenAI's list of models."""

from collections.abc import Iterator

import pytest
from gateway_server import Running, running

from kestrel_core.protocol.about import About


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        it.call_model("moondream-tiny")
        yield it


def test_adapters_are_listed_behind_their_model(gateway: Running) -> None:
    gateway.house.upstream.replicas[0].about = About("moondream-tiny", "1.0", 2048, (), ("a@1",))
    _, answer, _ = gateway.get("/v1/models")
    assert [(model["id"], model["parent"]) for model in answer["data"]] == [
        ("moondream-tiny", None),
        ("moondream-tiny/a@1", "moondream-tiny"),
    ]
    status, model, _ = gateway.get("/v1/models/moondream-tiny/a@1")
    assert (status, model["id"]) == (200, "moondream-tiny/a@1")


def test_the_list_holds_the_served_model(gateway: Running) -> None:
    status, answer, _ = gateway.get("/v1/models")
    [model] = answer["data"]
    assert (status, answer["object"], model["object"]) == (200, "list", "model")
    assert (model["id"], model["root"], model["parent"]) == ("moondream-tiny", "moondream-tiny", None)
    assert (type(model["created"]), model["max_model_len"]) == (int, 2048)


@pytest.mark.parametrize("name", ["", "moondream/", "moondream-tiny/", "nothing", "moondream/nothing"])
def test_what_is_not_listed_is_not_found(gateway: Running, name: str) -> None:
    status, answer, _ = gateway.get(f"/v1/models/{name}")
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (404, "model_not_found", "model")


@pytest.mark.parametrize("name", ["moondream-tiny", "moondream"])
def test_the_model_is_shown_by_its_name_and_by_its_alias(gateway: Running, name: str) -> None:
    status, model, _ = gateway.get(f"/v1/models/{name}")
    assert (status, model["id"], model["root"]) == (200, name, "moondream-tiny")


@pytest.mark.parametrize("name", ["gpt", "moondream/a@1", "a/b@1", "moondream%2Fa"])
def test_another_model_is_not_found_whatever_its_name_holds(gateway: Running, name: str) -> None:
    status, answer, _ = gateway.get(f"/v1/models/{name}")
    error = answer["error"]
    assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")
