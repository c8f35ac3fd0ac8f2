"""Adapters that Moondream hosts, from a service and a store of files on this machine."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from text_adapters import Clock, Text, TextReader

from kestrel_core.intake.adapters import AdapterStore
from kestrel_core.intake.hosted_adapters import HostedAdapters
from kestrel_core.protocol.errors import AdapterUnreachable, BadAdapter, KestrelError, UnknownAdapter

KEY = "a secret"
FINETUNE = "/v1/tuning/finetunes/01JABC/checkpoints/300/download"
VARIANT = "/v1/variants/geo_lora/download"
TORCH = b"PK numbers"
SAFETENSORS = bytes(8) + b"{} numbers"

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Service:
    """Answers by path, and notes what it was asked and with which key."""

    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""

    def points(self, path: str, to: str) -> None:
        self.answers[path] = (200, {"Content-Type": "application/json"}, json.dumps({"url": to}).encode())

    def gives(self, path: str, content: bytes) -> None:
        self.answers[path] = (200, {"Content-Type": "application/octet-stream"}, content)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.asked.append((self.path, self.headers.get("X-Moondream-Auth")))
            status, headers, body = service.answers.get(self.path, (404, {}, b"unknown"))
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        service.address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("MOONDREAM_ENDPOINT", service.address)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


def store(reader: TextReader | None = None, clock: Callable[[], float] | None = None) -> AdapterStore[Text]:
    return AdapterStore(reader or TextReader(), api_key=KEY, max_download_bytes=1000, clock=clock or Clock())


def refusal(name: str) -> KestrelError:
    with pytest.raises((UnknownAdapter, BadAdapter, AdapterUnreachable)) as caught:
        store().resolve(name)
    assert "\n" not in str(caught.value) and KEY not in str(caught.value)
    return caught.value


def kept(tmp_path: Path) -> list[str]:
    return sorted(file.name for file in (tmp_path / "cache").rglob("*") if file.is_file())


@pytest.mark.parametrize(("content", "suffix"), [(TORCH, ".pt"), (SAFETENSORS, ".safetensors")])
def test_a_step_of_a_finetune_is_fetched_from_where_the_service_points(
    service: Service, tmp_path: Path, content: bytes, suffix: str
) -> None:
    service.points(FINETUNE, f"{service.address}/files/x?signed=1")
    service.gives("/files/x?signed=1", content)
    assert store().resolve("01JABC@300") == Text(content.decode())
    assert service.asked == [(FINETUNE, KEY), ("/files/x?signed=1", None)], "the key is for the service alone"
    assert kept(tmp_path) == [f"01JABC@300{suffix}"]


def test_a_variant_is_the_answer_itself_or_where_it_sends_to(service: Service) -> None:
    service.gives(VARIANT, TORCH)
    assert store().resolve("geo_lora") == Text(TORCH.decode())
    service.answers["/v1/variants/moved/download"] = (302, {"Location": "/elsewhere"}, b"")
    service.gives("/elsewhere", SAFETENSORS)
    assert store().resolve("moved") == Text(SAFETENSORS.decode())
    assert service.asked == [(VARIANT, KEY), ("/v1/variants/moved/download", KEY), ("/elsewhere", None)]


def test_what_was_fetched_is_kept_for_good(service: Service) -> None:
    service.gives(VARIANT, TORCH)
    store().resolve("geo_lora")
    service.answers.clear()
    assert store().resolve("geo_lora") == Text(TORCH.decode())
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (404, UnknownAdapter, "is unknown at"),
        (410, UnknownAdapter, "is no longer kept at"),
        (401, AdapterUnreachable, "refuses the key in MOONDREAM_API_KEY"),
        (403, AdapterUnreachable, "refuses the key in MOONDREAM_API_KEY"),
        (500, AdapterUnreachable, "it answers 500"),
        (429, AdapterUnreachable, "it answers 429"),
    ],
)
@pytest.mark.parametrize("hop", [1, 2])
def test_a_refusal_of_the_service_is_told(
    service: Service, status: int, kind: type[KestrelError], said: str, hop: int
) -> None:
    service.points(FINETUNE, f"{service.address}/file")
    service.answers[FINETUNE if hop == 1 else "/file"] = (status, {}, b"no")
    error = refusal("01JABC@300")
    assert type(error) is kind and said in str(error) and '"01JABC@300"' in str(error)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {"Content-Type": "application/json"}, b"{}"), "does not say where the file lies"),
        ((200, {"Content-Type": "application/json"}, b"[1]"), "does not say where the file lies"),
        ((200, {"Content-Type": "application/json"}, b"{"), "cannot be fetched"),
        ((200, {"Content-Type": "application/json"}, b'{"url": 3}'), "does not say where the file lies"),
        ((200, {"Content-Type": "application/json"}, b'{"url": "file:///etc/passwd"}'), "is not https"),
        ((200, {"Content-Type": "application/json"}, b'{"url": "ftp://host/x"}'), "is not https"),
        ((302, {}, b""), "does not say where the file lies"),
        ((302, {"Location": FINETUNE}, b""), "from place to place"),
        ((200, {}, b""), "neither a torch nor a safetensors file"),
        ((200, {}, b"<html>an error page</html>"), "neither a torch nor a safetensors file"),
        ((200, {"Content-Length": "900"}, TORCH), "cannot be fetched"),
    ],
)
def test_an_answer_that_is_no_adapter_is_not_kept(
    service: Service, tmp_path: Path, answer: Answer, said: str
) -> None:
    service.answers[FINETUNE] = answer
    error = refusal("01JABC@300")
    assert isinstance(error, AdapterUnreachable) and said in str(error)
    assert kept(tmp_path) == []


@pytest.mark.parametrize("length", ["5000", ""])
def test_a_file_over_the_limit_is_refused_whether_or_not_its_size_is_told(
    service: Service, tmp_path: Path, length: str
) -> None:
    service.answers[FINETUNE] = (200, {"Content-Length": length}, b"PK" + bytes(1000))
    error = refusal("01JABC@300")
    assert isinstance(error, BadAdapter) and "more than the 1,000 bytes" in str(error)
    assert kept(tmp_path) == []


def test_an_endpoint_with_https_is_not_left_for_http(tmp_path: Path) -> None:
    hosted = HostedAdapters(KEY, 1000, 1.0, endpoint="https://service.example", cache=tmp_path)

    class Points:
        status = 302
        headers = {"Location": "http://elsewhere.example/x"}  # noqa: RUF012

    with pytest.raises(ValueError, match="not https"):
        hosted._pointed_at("https://service.example/v1", Points())


def test_a_download_takes_no_longer_than_its_time(service: Service, tmp_path: Path) -> None:
    service.gives(VARIANT, TORCH)
    times = iter((0.0, 31.0))
    hosted = HostedAdapters(KEY, 1000, 30.0, cache=tmp_path, clock=lambda: next(times))
    with pytest.raises(AdapterUnreachable, match="it took more than 30 s"):
        hosted.fetch("geo_lora")
    assert list(tmp_path.rglob("*.pt")) == []


def test_a_service_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MOONDREAM_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    error = refusal("01JABC@300")
    assert isinstance(error, AdapterUnreachable) and "try again later" in str(error)


@pytest.mark.parametrize(
    "name", ["../x@3", "x@", "x@3@4", "x@latest", "x y", "x.pt", "x" * 65, "é", "x/../y@3", "@3"]
)
def test_what_is_no_id_is_not_asked_for(service: Service, name: str) -> None:
    assert isinstance(refusal(name), UnknownAdapter)
    assert service.asked == []


def test_without_a_key_nothing_is_asked(service: Service) -> None:
    with pytest.raises(UnknownAdapter):
        AdapterStore(TextReader()).resolve("01JABC@300")
    assert service.asked == []
