"""KServe v2 over HTTP: Triton's documents, statuses and events, over a scripted upstream."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_server import Running, endless, failing, running
from tritonclient.http import InferenceServerClient

from kestrel_core.protocol.errors import DeadlinePassed, EngineFailed, KestrelError, Overloaded
from kestrel_core.protocol.fields import BY_NAME

GENERATE = "/v2/models/moondream/generate"
STREAM = "/v2/models/moondream/generate_stream"
QUERY = {"SKILL": "query", "QUESTION": "What?"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    with running() as it:
        yield it


@pytest.fixture
def gateway(shared: Running) -> Running:
    """Nobody has asked anything yet."""
    shared.upstream.asked.clear()
    shared.upstream.answers.clear()
    return shared


def events(gateway: Running, body: Any) -> list[Any]:
    return [json.loads(event["TEXT_OUTPUT"]) for event in gateway.events(STREAM, body)]


def test_tritons_own_client_finds_what_it_looks_for(gateway: Running) -> None:
    client = InferenceServerClient(f"127.0.0.1:{gateway.port}")
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("moondream")
    assert client.is_model_ready("moondream", "1") and not client.is_model_ready("moondream", "2")
    assert not client.is_model_ready("other")
    metadata = client.get_model_metadata("moondream")
    assert [given["name"] for given in metadata["inputs"]] == list(BY_NAME)
    assert client.get_model_config("moondream", "1")["model_transaction_policy"] == {"decoupled": True}
    assert "generate" in client.get_server_metadata()["extensions"]
    client.close()


@pytest.mark.parametrize("path", [GENERATE, "/v2/models/moondream/versions/1/generate"])
def test_an_answer_is_the_document_inside_tritons_own(gateway: Running, path: str) -> None:
    status, answer, headers = gateway.post(path, QUERY | {"MAX_TOKENS": 3, "TEMPERATURE": 0, "id": "r-7"})
    assert (status, answer["id"], answer["model_name"], answer["model_version"]) == (
        200,
        "r-7",
        "moondream",
        "1",
    )
    text = json.loads(answer["TEXT_OUTPUT"])
    assert (text["request_id"], text["answer"], text["finish_reason"]) == ("r-7", "a red circle", "stop")
    assert headers["x-request-id"] == "r-7"
    [asked] = gateway.upstream.asked
    assert (asked.skill, asked.settings.max_tokens, asked.timeout_s) == ("query", 3, 60.0)


def test_without_an_id_none_is_echoed(gateway: Running) -> None:
    _, answer, _ = gateway.post(GENERATE, QUERY)
    assert "id" not in answer and json.loads(answer["TEXT_OUTPUT"])["request_id"]


def test_a_stream_is_an_event_for_each_response(gateway: Running) -> None:
    found = events(gateway, QUERY | {"STREAM": True})
    assert [document["chunk"] for document in found] == ["a ", "red ", "circle", ""]
    assert [document["completed"] for document in found] == [False, False, False, True]
    assert found[-1]["answer"] == "a red circle"


def test_a_stream_of_one_response_has_no_pieces(gateway: Running) -> None:
    [only] = events(gateway, QUERY)
    assert only["answer"] == "a red circle" and "chunk" not in only


@pytest.mark.parametrize("body", [{"timeout": 2_000_000}, {"parameters": {"timeout": 2_000_000}}])
def test_parameters_stand_beside_the_inputs_or_in_an_object(gateway: Running, body: Any) -> None:
    assert gateway.post(GENERATE, QUERY | body)[0] == 200
    assert gateway.upstream.asked[0].timeout_s == 2.0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"QUESTIN": "x"}, "there is no input"),
        ({"question": "x"}, "send the input QUESTION"),
        ({"FOO": [1]}, '"FOO" is no input and a list'),
        ({"FOO": None}, '"FOO" is no input and a NoneType'),
        ({"TOP_K": None}, "TOP_K is None; it must be a whole number"),
        ({"MAX_TOKENS": "3"}, "it must be a whole number"),
        ({"MAX_TOKENS": 3.7}, "it must be a whole number"),
        ({"MAX_TOKENS": True}, "it must be a whole number"),
        ({"MAX_TOKENS": 4294967301}, "4294967301"),
        ({"MAX_TOKENS": 2**70}, "MAX_TOKENS"),
        ({"TOP_K": [1, 2]}, "TOP_K has 2 values"),
        ({"TEMPERATURE": True}, "it must be a number"),
        ({"REASONING": 1}, "it must be true or false"),
        ({"QUESTION": 5}, "it must be a string"),
        ({"timeout": -1}, "timeout is -1"),
        ({"SPATIAL_REFS": [[0.1] * 5]}, "SPATIAL_REFS must be rows"),
        ({"SPATIAL_REFS": 1}, "SPATIAL_REFS must be rows"),
        ({"SPATIAL_REFS": [["x", 1]]}, "it must be a number"),
        ({"id": 7}, "the id is"),
        ({"id": "a\nb"}, "the id is"),
        ({"parameters": 1}, "parameters must be an object"),
        ({"SKILL": "nothing"}, 'unknown_skill: there is no skill "nothing"'),
        ({"SKILL": ""}, "SKILL is required"),
        ({"STREAM": True}, "STREAM is for generate_stream"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_reason(gateway: Running, body: Any, words: str) -> None:
    status, answer, _ = gateway.post(GENERATE, QUERY | body)
    assert (status, list(answer)) == (400, ["error"])
    assert answer["error"].startswith("INVALID_ARG: ") and words in answer["error"], answer
    assert gateway.upstream.asked == []


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/v2/models/other", 404, "Request for unknown model: 'other' is not found"),
        ("POST", "/v2/models/other/generate", 404, "Request for unknown model: 'other' is not found"),
        ("GET", "/v2/models/moondream/versions/2", 404, "'moondream' version 2 is not found"),
        ("GET", "/v2/models", 404, "there is no /v2/models"),
        ("GET", "/v2/models/moondream/stats", 404, "there is no"),
        ("POST", "/v2/logging", 404, "there is no"),
        ("POST", "/v2/repository/models/moondream/unload", 404, "there is no"),
        ("POST", "/v2/systemsharedmemory/region/x/register", 404, "there is no"),
        ("GET", GENERATE, 405, "it takes POST"),
        ("POST", "/v2/models/moondream/infer", 501, "decoupled"),
    ],
)
def test_a_path_that_there_is_not(gateway: Running, method: str, path: str, status: int, words: str) -> None:
    got, answer, _ = gateway.ask(method, path, b"{}" if method == "POST" else None, {})
    assert got == status and words in answer["error"], answer


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (Overloaded("the queue is full"), 429, "UNAVAILABLE: the queue is full"),
        (DeadlinePassed("too late"), 504, "CANCELLED: deadline_passed: too late"),
        (EngineFailed("broken"), 500, "INTERNAL: broken"),
    ],
)
def test_an_error_has_its_status_and_its_code(
    gateway: Running, error: KestrelError, status: int, text: str
) -> None:
    gateway.upstream.scripts += [failing(error)] * 2
    for path in (GENERATE, STREAM):
        got, answer, headers = gateway.post(path, QUERY)
        document = answer if path == GENERATE else json.loads(answer.removeprefix("data: "))
        assert (got, document) == (status, {"error": text})
        assert ("retry-after" in headers) == (status == 429)


def test_an_error_after_the_first_event_is_an_event(gateway: Running) -> None:
    gateway.upstream.scripts.append(failing(EngineFailed("broken"), after=1))
    first, last = gateway.events(STREAM, QUERY | {"STREAM": True})
    assert json.loads(first["TEXT_OUTPUT"])["chunk"] == "a "
    assert last == {"error": "INTERNAL: broken"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://elsewhere.example"}, 415),
        ({"Sec-Fetch-Site": "cross-site"}, 415),
        ({"Content-Type": "application/json", "Origin": "https://elsewhere.example"}, 200),
    ],
)
def test_a_web_page_cannot_ask_without_saying_json(
    gateway: Running, headers: dict[str, str], status: int
) -> None:
    assert gateway.ask("POST", GENERATE, json.dumps(QUERY).encode(), headers)[0] == status


def test_deep_json_is_refused(gateway: Running) -> None:
    deep = b'{"SKILL":"query","x":' + b"[" * 107_500 + b"]" * 107_500 + b"}"
    for path in (GENERATE, STREAM):
        assert gateway.post(path, deep)[0] == 400
    assert gateway.post(GENERATE, b'{"SKILL":"query","x":' + b"[" * 5000 + b"]" * 5000 + b"}")[0] == 400
    assert gateway.post(GENERATE, QUERY)[0] == 200


def test_a_client_that_goes_cancels_its_request(gateway: Running) -> None:
    gateway.upstream.scripts.append(endless)
    connection: http.client.HTTPConnection = gateway.leaver(GENERATE, QUERY)
    connection.close()
    assert gateway.upstream.answers[0].is_cancelled.wait(60)


def test_it_is_not_ready_from_the_moment_it_ends() -> None:
    with running(drain_s=1.0) as gateway:
        gateway.house.drain.begin()
        status, answer, _ = gateway.get("/v2/models/moondream/ready")
        assert status == 503 and answer["error"].startswith("UNAVAILABLE: shutting_down")
