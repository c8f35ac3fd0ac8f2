"""Adapters on the real stack: every way to name one, files that come, change and go, and unusable ones."""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from adapter_folder import UNUSABLE, save_adapter, save_peft, save_unusable
from triton_server import Served, ask, base64_of, picture, refusal, served, stream, until
from tritonclient.utils import InferenceServerException

from kestrel_client import BadAdapter, Client, UnknownAdapter
from kestrel_core.moondream.checkpoint.weights import load_config
from kestrel_core.moondream.config import TextConfig

pytestmark = pytest.mark.triton

QUERY = {"SKILL": "query", "QUESTION": "what?", "TEMPERATURE": 0.0, "MAX_TOKENS": 12}
KEY = "a-secret-key-of-moondreams"
UNKNOWN = ["org/nobody", "../x", "..", "/etc/passwd", "a/../../x", "good/../good", ".", "x\n", "no one"]
HOSTED = [
    "nobody",
    "nobody@7",
]  # in the form of names that Moondream hosts; and Moondream cannot be reached here


@dataclass
class Adapted:
    server: Served
    folder: Path
    config: TextConfig

    def http(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """By the gateway."""
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def listed(self) -> list[str]:
        return [card["id"] for card in self.http("GET", "/v1/models")[1]["data"]]

    def answer(self, **inputs: Any) -> str:
        return str(self.server.ask(**(QUERY | inputs))[-1]["answer"])


@pytest.fixture(scope="module")
def adapted(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adapted]:
    folder = tmp_path_factory.mktemp("adapters")
    config = load_config(model, None).text
    save_adapter(folder / "good.safetensors", config, 1)
    save_adapter(folder / "other.pt", config, 2)
    save_peft(folder / "peft", config, 3)
    save_unusable(folder, config)
    log = tmp_path_factory.mktemp("served") / "log"
    variables = {
        "KESTREL_MODEL_PATH": str(model),
        "KESTREL_ADAPTERS": str(folder),
        "KESTREL_MAX_ADAPTERS": "2",
    }
    with served(
        log, gateway=True, MOONDREAM_API_KEY=KEY, MOONDREAM_ENDPOINT="http://127.0.0.1:9", **variables
    ) as it:
        yield Adapted(it, folder, config)
    assert KEY not in log.read_text()


def test_every_way_to_name_an_adapter_is_answered_by_it(adapted: Adapted) -> None:
    server, plain = adapted.server, adapted.answer()
    by_grpc = adapted.answer(ADAPTER="good")
    assert by_grpc not in ("", plain), "the adapter changes nothing"
    image = base64_of(picture(1))
    streamed = server.ask(**QUERY, ADAPTER="good", STREAM=True)
    assert streamed[-1]["answer"] == by_grpc and len(streamed) > 1
    assert server.post(QUERY | {"ADAPTER": "good"})[1]["answer"] == by_grpc
    settings = {"temperature": 0, "max_tokens": 12}
    rest = {"question": "what?", "settings": settings | {"adapter": "good"}}
    assert adapted.http("POST", "/v1/query", rest)[1]["answer"] == by_grpc
    named = {"question": "what?", "settings": settings, "model": "moondream/good"}
    assert adapted.http("POST", "/v1/query", named)[1]["answer"] == by_grpc
    [base, *_] = adapted.listed()
    chat = {"model": f"{base}/good", "messages": [{"role": "user", "content": "what?"}], **settings}
    status, told = adapted.http("POST", "/v1/chat/completions", chat)
    assert (status, told["model"]) == (200, f"{base}/good")
    assert told["choices"][0]["message"]["content"] == by_grpc
    with Client(f"127.0.0.1:{server.grpc_port}") as client:
        assert client.query(None, "what?", adapter="good", **settings).text == by_grpc
    # A picture's positions are the adapter's too, and nothing of them is shared with those without it.
    seen = {"IMAGE": image.encode()}
    assert adapted.answer(**seen, ADAPTER="good") != adapted.answer(**seen)
    assert adapted.answer() == plain


def test_many_at_once_answer_as_each_does_alone(adapted: Adapted) -> None:
    names = ["good", None, "other", "peft", "good", None, "other", "peft"]  # of which two find room at once
    requests = [QUERY | ({"ADAPTER": name} if name else {}) for name in names]
    alone = [adapted.answer(**request) for request in requests]
    together = [answers[-1]["answer"] for answers in adapted.server.ask_all(requests)]
    assert together == alone and len(set(alone)) == 4
    until(adapted.server.is_idle)
    found = adapted.server.metrics()
    assert found['kestrel_adapters_resident{engine="0"}'] == 2
    assert found['kestrel_adapter_waiting_requests{engine="0"}'] == 0
    assert (
        found['kestrel_adapter_loads_total{engine="0"}']
        - found['kestrel_adapter_evictions_total{engine="0"}']
        == 2
    )


def test_adapters_are_listed_behind_their_model(adapted: Adapted) -> None:
    _, listed = adapted.http("GET", "/v1/models")
    base, *cards = listed["data"]
    names = {"good", "other", "peft", *UNUSABLE}
    assert {card["id"] for card in cards} == {f"{base['id']}/{name}" for name in names}
    assert {(card["parent"], card["root"]) for card in cards} == {(base["id"], base["id"])}
    status, card = adapted.http("GET", f"/v1/models/{base['id']}/good")
    assert (status, card["id"]) == (200, f"{base['id']}/good")
    [about] = adapted.server.ask(SKILL="about")
    assert set(about["about"]["adapters"]) == names


def code_of(adapted: Adapted, name: str) -> tuple[str, str]:
    """The wire's code and the text, the same over gRPC and HTTP."""
    with pytest.raises(InferenceServerException) as raised:
        adapted.server.ask(**QUERY, ADAPTER=name)
    status, answer = adapted.server.post(QUERY | {"ADAPTER": name})
    assert (status, refusal(answer)) == (400, refusal(raised.value))
    code, _, text = refusal(raised.value).partition(": ")
    return code, text


@pytest.mark.parametrize("name", [*UNKNOWN, *HOSTED])
def test_what_is_no_adapter_is_not_found(adapted: Adapted, name: str) -> None:
    code, text = code_of(adapted, name)
    assert code == ("UNAVAILABLE" if name in HOSTED else "NOT_FOUND")
    assert_says_little(adapted, text)


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cannot_be_used_says_why(adapted: Adapted, name: str) -> None:
    code, text = code_of(adapted, name)
    assert code == "INVALID_ARG" and UNUSABLE[name][1] in text
    assert_says_little(adapted, text)
    assert not (adapted.folder / "was-run").exists(), "code in a file was run"


def assert_says_little(adapted: Adapted, text: str) -> None:
    """A sentence or two: no traceback, no path and no key."""
    assert 10 < len(text) < 400 and "\n" not in text and "Traceback" not in text
    assert str(adapted.folder) not in text and KEY not in text
    assert not re.search(r"/(tmp|usr|home|root)/", text)


def test_errors_keep_their_kind_on_every_path(adapted: Adapted) -> None:
    for name, status, code in (("half", 400, "bad_adapter"), ("no one", 404, "unknown_adapter")):
        found, told = adapted.http("POST", "/v1/query", {"question": "?", "adapter": name})
        assert (found, told["error"]["code"], told["error"]["param"]) == (status, code, "adapter")
    chat = {"model": "moondream/no one", "messages": [{"role": "user", "content": "?"}]}
    found, told = adapted.http("POST", "/v1/chat/completions", chat)
    assert (found, told["error"]["code"], told["error"]["param"]) == (404, "model_not_found", "model")
    with Client(f"127.0.0.1:{adapted.server.grpc_port}") as client:
        with pytest.raises(BadAdapter, match="only a part of one"):
            client.query(None, "?", adapter="half")
        with pytest.raises(UnknownAdapter, match="no one"):
            client.query(None, "?", adapter="no one")


def test_a_neighbour_is_not_disturbed(adapted: Adapted) -> None:
    """A stream with an adapter says the same while every unusable and unknown one is asked for."""
    asked = QUERY | {"MAX_TOKENS": 60, "STREAM": True, "ADAPTER": "good"}
    alone = adapted.server.ask(**asked)[-1]["answer"]

    async def beside() -> tuple[str, list[Any]]:
        async with adapted.server.client() as client:
            neighbour = stream(client, **asked)
            await anext(neighbour)
            bad = [ask(client, **QUERY, ADAPTER=name) for name in (*UNUSABLE, *UNKNOWN, *HOSTED)]
            refused = await asyncio.gather(*bad, return_exceptions=True)
            said = [chunk async for chunk in neighbour]
            return said[-1]["answer"], refused

    said, refused = asyncio.run(beside())
    assert said == alone
    assert all(isinstance(error, InferenceServerException) for error in refused)


def test_a_file_that_appears_is_found_and_one_that_goes_is_not(adapted: Adapted) -> None:
    file = adapted.folder / "late.safetensors"
    code_of(adapted, "late")
    save_adapter(file, adapted.config, 7)
    try:
        assert adapted.answer(ADAPTER="late") != adapted.answer()
        until(lambda: any(name.endswith("/late") for name in adapted.listed()))
    finally:
        file.unlink()
    until(lambda: not any(name.endswith("/late") for name in adapted.listed()))
    with pytest.raises(InferenceServerException):
        adapted.server.ask(**QUERY, ADAPTER="late")


def test_a_replaced_file_answers_at_once_and_the_same_file_by_another_name_shares_its_cache(
    adapted: Adapted,
) -> None:
    file, twin = adapted.folder / "changing.safetensors", adapted.folder / "twin.safetensors"
    try:
        save_adapter(file, adapted.config, 11)
        first = adapted.answer(ADAPTER="changing")
        save_adapter(file, adapted.config, 12)
        second = adapted.answer(ADAPTER="changing")
        assert first != second
        os.link(file, twin)
        asked = QUERY | {"QUESTION": "the same long question, " * 20, "IMAGE": picture(5)}
        adapted.server.ask(**asked, ADAPTER="changing")
        [again] = adapted.server.ask(**asked, ADAPTER="twin")
        [other] = adapted.server.ask(**asked, ADAPTER="good")
        assert again["metrics"]["cached_tokens"] > 0
        assert other["metrics"]["cached_tokens"] == 0
    finally:
        file.unlink(missing_ok=True)
        twin.unlink(missing_ok=True)
