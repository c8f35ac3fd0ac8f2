"""Keys over HTTP: who is let in, what each may ask, how often, and how many at once."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_server import Running, endless, running

from kestrel_core.protocol.about import About
from kestrel_gateway.admission.key_file import digest_of, make_key

ALICE, BOB = "kestrel-alice", "kestrel-bob"
QUERY = {"question": "What?"}
FORBIDDEN_SKILL = {"image_url": "QUJD", "object": "cat"}


def lines(name: str, key: str, more: str = "") -> str:
    return f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(key.encode()).hex()}"\n{more}\n'


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.toml"
    path.write_text(lines("alice", ALICE) + lines("bob", BOB))
    return path


@pytest.fixture
def gateway(keys: Path) -> Iterator[Running]:
    with running(api_keys=keys) as it:
        yield it


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {ALICE}"},
        {"authorization": f"bearer  {ALICE} "},
        {"X-Moondream-Auth": ALICE},
        {"X-Moondream-Auth": ALICE, "Authorization": ""},
        {"X-Moondream-Auth": ALICE, "Authorization": "Bearer "},
        {"X-Moondream-Auth": "", "Authorization": f"Bearer {ALICE}"},
    ],
)
def test_a_key_is_taken_from_either_header(gateway: Running, headers: dict[str, str]) -> None:
    status, answer, _ = gateway.ask(
        "POST", "/v1/query", b'{"question": "?"}', {"Content-Type": "application/json", **headers}
    )
    assert (status, answer["answer"]) == (200, "a red circle")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"X-Moondream-Auth": ""},
        {"Authorization": f"Basic {ALICE}"},
        {"Authorization": ALICE},
        {"Authorization": "Bearer kestrel-eve"},
        {"Authorization": f"Bearer {ALICE}x"},
        {"Authorization": f"Bearer {digest_of(ALICE.encode()).hex()}"},
        {"X-Moondream-Auth": "\xe9"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/query"), ("GET", "/v1/models"), ("GET", "/v1/nothing")]
)
def test_nobody_without_a_key_gets_in(
    gateway: Running, method: str, path: str, headers: dict[str, str]
) -> None:
    status, answer, sent = gateway.ask(method, path, b"{}" if method == "POST" else None, headers)
    assert (status, answer["error"]["type"]) == (401, "authentication_error")
    assert sent["www-authenticate"] == "Bearer"
    given = [value for value in headers.values() if value]
    assert not any(value in answer["error"]["message"] for value in given)
    assert gateway.upstream.asked == []


@pytest.mark.parametrize("path", ["/v2", "/v2/", "/v2/models/moondream"])
def test_what_a_server_says_of_itself_needs_a_key(gateway: Running, path: str) -> None:
    status, answer, _ = gateway.get(path)
    assert status == 401 and "needs a key" in answer["error"]  # Triton's envelope


@pytest.mark.parametrize("path", ["/livez", "/healthz", "/readyz", "/v1/health/live", "/v2/health/ready"])
def test_health_needs_no_key(gateway: Running, path: str) -> None:
    assert gateway.get(path)[0] == 200


def test_without_a_file_everybody_may_ask_with_any_key() -> None:
    with running() as gateway:
        assert gateway.post("/v1/query", QUERY, authorization="Bearer anything")[0] == 200
        assert gateway.upstream.asked[0].cache_salt == ""


def test_a_key_may_ask_its_skills_and_use_its_adapters_alone(gateway: Running, keys: Path) -> None:
    keys.write_text(lines("alice", ALICE, 'skills = ["query"]\nadapters = ["a@1"]') + lines("bob", BOB))
    gateway.house.keys.reread()
    ask = {"authorization": f"Bearer {ALICE}"}
    assert gateway.post("/v1/query", QUERY, **ask)[0] == 200
    assert gateway.post("/v1/query", QUERY | {"model": "moondream/a@1"}, **ask)[0] == 200
    for path, body, named in [
        ("/v1/detect", FORBIDDEN_SKILL, "detect"),
        ("/v1/query", QUERY | {"settings": {"adapter": "b@1"}}, "b@1"),
        ("/v1/query", QUERY | {"model": "moondream/b@1"}, "b@1"),
    ]:
        status, answer, _ = gateway.post(path, body, **ask)
        assert (status, answer["error"]["type"]) == (403, "permission_error")
        assert named in answer["error"]["message"]
    assert len(gateway.upstream.asked) == 2
    assert gateway.post("/v1/detect", FORBIDDEN_SKILL, authorization=f"Bearer {BOB}")[0] == 200


def test_over_the_rate_the_answer_says_when_to_ask_again(gateway: Running, keys: Path) -> None:
    keys.write_text(lines("alice", ALICE, "requests_per_minute = 2") + lines("bob", BOB))
    gateway.house.keys.reread()
    ask = {"authorization": f"Bearer {ALICE}"}
    assert [gateway.post("/v1/query", QUERY, **ask)[0] for _ in range(2)] == [200, 200]
    status, answer, headers = gateway.post("/v1/query", QUERY, **ask)
    assert (status, answer["error"]["type"]) == (429, "rate_limit_error")
    assert 50 <= int(headers["retry-after"]) <= 60
    assert "2 times a minute" in answer["error"]["message"]
    assert gateway.post("/v1/query", QUERY, authorization=f"Bearer {BOB}")[0] == 200


def test_over_its_concurrency_a_key_waits_for_one_to_end(gateway: Running, keys: Path) -> None:
    keys.write_text(lines("alice", ALICE, "concurrent = 1"))
    gateway.house.keys.reread()
    gateway.upstream.scripts = [endless]
    held = _started(gateway.port, ALICE)
    while not gateway.upstream.answers:
        pass
    status, answer, headers = gateway.post("/v1/query", QUERY, authorization=f"Bearer {ALICE}")
    assert (status, answer["error"]["type"], headers["retry-after"]) == (429, "rate_limit_error", "1")
    held.close()
    assert gateway.upstream.answers[0].is_cancelled.wait(60)
    while gateway.post("/v1/query", QUERY, authorization=f"Bearer {ALICE}")[0] == 429:
        pass  # the place is free as soon as the leaver has been noticed


def test_a_salted_key_shares_the_cache_with_itself_alone(gateway: Running, keys: Path) -> None:
    keys.write_text("salt_cache = true\n" + lines("alice", ALICE) + lines("bob", BOB, "salt_cache = false"))
    gateway.house.keys.reread()
    for key, body in [
        (ALICE, QUERY),
        (ALICE, QUERY),
        (ALICE, QUERY | {"cache_salt": "mine"}),
        (BOB, QUERY),
        (BOB, QUERY | {"cache_salt": "mine"}),
    ]:
        assert gateway.post("/v1/query", body, authorization=f"Bearer {key}")[0] == 200
    first, second, own, plain, given = (request.cache_salt for request in gateway.upstream.asked)
    assert first == second
    assert len({first, own, plain, given}) == 4
    assert (plain, given) == ("", "mine")
    assert digest_of(ALICE.encode()).hex()[:32] != first


def test_a_key_sees_the_adapters_that_it_may_use(gateway: Running, keys: Path) -> None:
    keys.write_text(lines("alice", ALICE, 'adapters = ["a@1"]') + lines("bob", BOB))
    gateway.house.keys.reread()
    about = About("moondream2", "1.0", 2048, (), adapters=("a@1", "b@1"))
    gateway.house.upstream.replicas[0].about = about
    seen = {}
    for key in (ALICE, BOB):
        _, listed, _ = gateway.get("/v1/models", authorization=f"Bearer {key}")
        seen[key] = [card["id"] for card in listed["data"]]
    assert seen[ALICE] == ["moondream2", "moondream2/a@1"]
    assert seen[BOB] == ["moondream2", "moondream2/a@1", "moondream2/b@1"]
    assert gateway.get("/v1/models/moondream2/b@1", authorization=f"Bearer {ALICE}")[0] == 404


def test_sighup_reads_the_file_again(gateway: Running, keys: Path, caplog: Any) -> None:
    keys.write_text(lines("bob", BOB))
    gateway.house.keys.reread()
    assert gateway.post("/v1/query", QUERY, authorization=f"Bearer {ALICE}")[0] == 401
    keys.write_text("[[keys]]\nname = 1")
    with caplog.at_level(logging.ERROR, "kestrel.gateway"):
        gateway.house.keys.reread()
    assert "stay as they were" in caplog.text
    assert gateway.post("/v1/query", QUERY, authorization=f"Bearer {BOB}")[0] == 200


def test_no_log_and_no_answer_holds_a_key(gateway: Running, caplog: Any) -> None:
    with caplog.at_level(logging.DEBUG):
        for key in (ALICE, "kestrel-wrong-key"):
            _, answer, headers = gateway.post("/v1/query", QUERY, authorization=f"Bearer {key}")
            assert key not in f"{answer} {headers} {caplog.text}"


def test_a_new_key_is_let_in_by_the_lines_beside_it(gateway: Running, keys: Path) -> None:
    key, text = make_key("carol")
    keys.write_text(text)
    gateway.house.keys.reread()
    assert gateway.post("/v1/query", QUERY, authorization=f"Bearer {key}")[0] == 200
    assert len(key) >= 40 and make_key("carol")[0] != key


def _started(port: int, key: str) -> socket.socket:
    door = socket.create_connection(("127.0.0.1", port))
    body = b'{"question": "What?"}'
    head = f"POST /v1/query HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    door.sendall(head.encode() + body)
    return door
