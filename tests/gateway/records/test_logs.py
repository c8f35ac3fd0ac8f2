"""The log: one line a request, which says everything about it but what was asked and answered."""

import json
import logging
from typing import Any

from gateway_server import failing, running

from kestrel_core.protocol.errors import EngineFailed
from kestrel_gateway.records.logs import Alike, Log
from kestrel_gateway.records.visits import Visit

PICTURE = "iVBORw0KGgo="


class Lines(list[bytes]):
    def read(self) -> list[Any]:
        return [json.loads(line) for line in self]


def test_a_request_is_one_line_with_its_tokens_and_times() -> None:
    lines = Lines()
    with running(observers=[Log("json", lines.append)]) as gateway:
        gateway.post("/v1/query", {"question": "A SECRET", "image_url": PICTURE}, x_request_id="mine")
    [told] = lines.read()
    assert told["latency_ms"] > 0
    expected = {
        "level": "info",
        "request_id": "mine",
        "method": "POST",
        "path": "/v1/query",
        "status": 200,
        "outcome": "ok",
        "skill": "query",
        "model": "moondream",
        "stream": False,
        "ttft_ms": 15.0,
        "queue_ms": 0.5,
        "finish_reason": "stop",
        "input_tokens": 740,
        "output_tokens": 3,
        "cached_tokens": 730,
    }
    assert {name: told[name] for name in expected} == expected


def test_neither_prompt_nor_picture_nor_answer_is_written() -> None:
    lines = Lines()
    with running(observers=[Log("json", lines.append), Log("text", lines.append)]) as gateway:
        body = {"question": "A SECRET", "image_url": PICTURE}
        gateway.post("/v1/query", body)
        gateway.events("/v1/query", {**body, "stream": True})
        gateway.post("/v1/query?question=SECRET", {**body, "SECRET": 1, "settings": {"SECRET": 2}})
        gateway.upstream.scripts = [failing(EngineFailed("broken at SECRET"))]
        gateway.post("/v1/query", body)
    assert len(lines) == 8
    written = b"".join(lines).decode()
    for secret in ("SECRET", PICTURE, "red", "circle"):
        assert secret not in written


def test_a_refusal_says_its_reason_and_a_fault_of_ours_is_an_error() -> None:
    lines = Lines()
    with running(observers=[Log("json", lines.append)]) as gateway:
        gateway.upstream.scripts = [failing(EngineFailed("broken"))]
        gateway.post("/v1/query", b"{")
        gateway.post("/v1/query", {"question": "?"})
    refused, failed = lines.read()
    assert (refused["level"], refused["status"], refused["outcome"]) == ("info", 400, "invalid_request")
    assert (failed["level"], failed["status"], failed["outcome"]) == ("error", 500, "engine_failed")
    assert "skill" not in refused


def test_what_one_caller_is_told_again_and_again_is_counted() -> None:
    now, lines = 0.0, Lines()
    log = Log("json", lines.append)
    log._alike = Alike(lambda: now)

    def end(outcome: str, key: str) -> None:
        visit = Visit("1", "POST", "/v1/query", key=key)
        visit.end(200 if outcome == "ok" else 429, outcome)
        log.ended(visit)

    for _ in range(15):
        end("ok", "busy")
        end("too_many_at_once", "busy")
    end("too_many_at_once", "modest")
    assert len(lines) == 15 + 10 + 1
    now = 1.0
    end("too_many_at_once", "busy")
    told, last = lines.read()[-2:]
    assert told["message"] == "5 more requests of key busy ended with too_many_at_once"
    assert last["status"] == 429


def test_control_characters_of_a_caller_are_escaped() -> None:
    lines = Lines()
    with running(observers=[Log("text", lines.append), Log("json", lines.append)]) as gateway:
        gateway.get("/v1/%0a%1b[31mred%7f%c2%85" + "x" * 1000)
    for line in lines:
        text = line.decode()
        assert text[:-1].isprintable() and text.endswith("\n")
        assert len(line) < 1000


def test_probes_are_told_of_only_when_something_else_is_wrong() -> None:
    lines = Lines()
    with running(observers=[Log("json", lines.append)]) as gateway:
        for path in ("/livez", "/readyz", "/metrics"):
            gateway.get(path)
        assert not lines
        gateway.house.upstream.replicas[0].leave("it is broken")
        assert gateway.get("/readyz")[0] == 503
        assert not lines
        gateway.post("/readyz", {})
    assert [(told["path"], told["status"]) for told in lines.read()] == [("/readyz", 405)]


def test_other_loggers_write_the_same_way() -> None:
    lines = Lines()
    logger = logging.Logger("uvicorn.error")
    logger.addHandler(Log("json", lines.append))
    logger.info("Started %s\n", "well")
    try:
        raise ValueError("broken\x1b[0m")
    except ValueError:
        logger.exception("failed")
    logger.debug("unimportant")
    started, failed = lines.read()
    assert (started["level"], started["message"]) == ("info", "Started well\\n")
    assert (failed["level"], failed["logger"]) == ("error", "uvicorn.error")
    assert failed["traceback"].endswith("ValueError: broken\\x1b[0m")


def test_text_is_one_readable_line() -> None:
    lines = Lines()
    with running(observers=[Log("text", lines.append)]) as gateway:
        gateway.post("/v1/query", {"question": "?"}, x_request_id="mine")
    [line] = lines
    assert b" info POST /v1/query 200 request_id=mine outcome=ok latency_ms=" in line


def test_a_reader_of_the_log_that_has_gone_disturbs_nobody() -> None:
    def broken(line: bytes) -> None:
        raise BrokenPipeError

    with running(observers=[Log("json", broken)]) as gateway:
        assert gateway.post("/v1/query", {"question": "?"})[0] == 200


def test_no_value_of_a_text_line_is_taken_for_another_field() -> None:
    lines = Lines()
    with running(observers=[Log("text", lines.append)]) as gateway:
        gateway.post(
            "/v2/models/moondream/generate", {"SKILL": "query", "QUESTION": "?", "id": 'a "b" status=200'}
        )
        gateway.get("/zz%20200%20outcome=ok%20key=bob")
    asked, lost = (line.decode() for line in lines)
    assert ' request_id="a \\"b\\" status=200" ' in asked and " status=" not in asked.replace(
        ' status=200" ', ""
    )
    assert ' GET "/zz 200 outcome=ok key=bob" 404 ' in lost
