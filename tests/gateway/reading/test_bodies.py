"""Bodies within limits: what is too large, too slow, too deep or nothing that can be read is refused."""

import base64
import socket
from collections.abc import Iterator

import pytest
from gateway_server import Running, endless, running

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running(max_body_bytes=2_000_000, max_image_bytes=1_000_000, body_timeout_s=4.0) as it:
        yield it


def form(*parts: tuple[str, bytes], boundary: bytes = b"x") -> bytes:
    """Parts with their own heads: `name="a"` or `name="a"; filename="b"`."""
    made = b"".join(
        b"--"
        + boundary
        + b"\r\nContent-Disposition: form-data; "
        + head.encode()
        + b"\r\n\r\n"
        + data
        + b"\r\n"
        for head, data in parts
    )
    return made + b"--" + boundary + b"--\r\n"


def spoken(gateway: Running, data: bytes) -> bytes:
    """What comes back, to the end of the connection, when these bytes are sent."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as door:
        door.sendall(data)
        answer = b""
        while more := door.recv(65536):
            answer += more
        return answer


def head(*headers: str, path: str = "/v1/query") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: a", "Content-Type: application/json", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_a_declared_length_over_the_limit_is_refused_before_the_body(gateway: Running) -> None:
    answer = spoken(gateway, head("Content-Length: 2000001"))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"2,000,000" in answer and b"connection: close" in answer


def test_a_body_that_is_not_asked_for_is_never_sent(gateway: Running) -> None:
    answer = spoken(gateway, head("Content-Length: 2000001", "Expect: 100-continue"))
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_is_asked_for_is_awaited(gateway: Running) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as door:
        door.sendall(head("Content-Length: 17", "Expect: 100-continue"))
        assert door.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        door.sendall(b'{"question": "?"}')
        assert door.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_a_chunked_body_is_counted_as_it_comes(gateway: Running) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = spoken(gateway, head("Transfer-Encoding: chunked") + chunk * 40)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_shorter_than_it_says_times_out(gateway: Running) -> None:
    answer = spoken(gateway, head("Content-Length: 1000") + b"{")
    assert answer.startswith(b"HTTP/1.1 408 ") and b"body_timeout" in answer


def test_what_comes_behind_a_body_is_another_request(gateway: Running) -> None:
    answer = spoken(gateway, head("Content-Length: 17") + b'{"question": "?"}smuggled')
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: -1",),
        ("Content-Length: 1e3",),
        ("Content-Length: " + "9" * 40,),
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: gzip",),
    ],
)
def test_a_length_that_cannot_be_trusted_is_no_http(gateway: Running, headers: tuple[str, ...]) -> None:
    answer = spoken(gateway, head(*headers) + b"{}")
    assert answer.startswith(b"HTTP/1.1 400 ") and b'"code":"bad_http"' in answer


def test_a_compressed_body_is_refused(gateway: Running) -> None:
    status, answer, _ = gateway.ask("POST", "/v1/query", b"{}", JSON | {"Content-Encoding": "gzip"})
    assert (status, answer["error"]["code"]) == (415, "unsupported_media_type")
    status, _, _ = gateway.post("/v1/query", {"question": "?"}, content_encoding="identity")
    assert status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 250_000,
        b'{"question":' * 15_000,
        b'{"question": "?", "x": [' + b"0," * 900_000 + b"0]}",
        b"{" + b'"a":1,' * 300_000 + b'"b":1}',
        b'{"question": ' + b"9" * 1_000_000 + b"}",
        b'{"question": 1e' + b"9" * 1_000_000 + b"}",
        b'{"question": NaN}',
        b'{"question": "?", "temperature": Infinity}',
        b'{"question": "\\ud800"}',
        b'{"question": "?"} {}',
        b"\xef\xbb\xbf{}",
        b"",
        b"null",
    ],
    ids=lambda data: data[:12].decode("latin-1"),
)
def test_json_that_is_none_of_ours_is_refused(gateway: Running, data: bytes) -> None:
    gateway.upstream.asked.clear()
    status, answer, _ = gateway.ask("POST", "/v1/query", data, JSON)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert len(answer["error"]["message"]) < 300
    assert gateway.upstream.asked == []


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"question": "a" * 65_537}, 413, "65,536"),
        ({"question": "?", "stop": ["a"] * 17}, 413, "16"),
        ({"question": "?", "stop": ["a" * 1025]}, 413, "1,024"),
        ({"question": "?", "spatial_refs": [[0.5, 0.5]] * 101}, 413, "100"),
        ({"object": "a" * 1025}, 413, "1,024"),
        ({"question": "?", "settings": {"a" * 1_500_000: 1}}, 400, "no setting"),
        ({"question": "?", "settings": {"temperature": "a" * 1_500_000}}, 400, "TEMPERATURE"),
        ({"question": "?", "max_tokens": 10**4000}, 400, "MAX_TOKENS"),
        ({"question": "?", "model": "a" * 1_500_000}, 404, "no model"),
        ({"question": "?", "stream": "a" * 1_500_000}, 400, "stream"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_over_its_limit_is_refused_with_the_limit(
    gateway: Running, body: dict[str, object], status: int, said: str
) -> None:
    found, answer, _ = gateway.post("/v1/query", body)
    assert (found, said in answer["error"]["message"]) == (status, True), answer
    assert len(answer["error"]["message"]) < 400


def test_the_values_of_a_slash_command_are_bounded_too(gateway: Running) -> None:
    """Written as escapes they hold no mark that is counted in the body itself."""
    text = b"/detect {" + b"\\u005b" * 100_000
    body = b'{"model": "moondream", "messages": [{"role": "user", "content": "' + text + b'"}]}'
    status, answer, _ = gateway.ask("POST", "/v1/chat/completions", body, JSON)
    assert (status, answer["error"]["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (form(*((f'name="f{index}"', b"a") for index in range(65))), "multipart/form-data; boundary=x"),
        (form(*((f'name="f{i}"; filename="f"', b"a") for i in range(5))), "multipart/form-data; boundary=x"),
        (form(('name="a"\r\nX: ' + "y" * 5000, b"a")), "multipart/form-data; boundary=x"),
        (form(('name="a"' + "\r\nX: y" * 9, b"a")), "multipart/form-data; boundary=x"),
        (form(('filename="a"', b"a")), "multipart/form-data; boundary=x"),
        (form(('name="a"', b"1"), ('name="a"', b"2")), "multipart/form-data; boundary=x"),
        (form(('name="settings"', b"[" * 1_000_000)), "multipart/form-data; boundary=x"),
        (form(('name="settings"', b"[" + b"0," * 500_000 + b"0]")), "multipart/form-data; boundary=x"),
        (
            form(('name="question"', b"\xff\xfe"), ('name="image"; filename="a"', b"a")),
            "multipart/form-data; boundary=x",
        ),
        (form(('name="a"', b"a")), "multipart/form-data"),
        (form(('name="a"', b"a")), "multipart/form-data; boundary=" + "y" * 300),
        (form(('name="a"', b"a")), "multipart/form-data; boundary=y"),
        (b"\r\n--" * 300_000, "multipart/form-data; boundary=x"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(gateway: Running, data: bytes, content_type: str) -> None:
    gateway.upstream.asked.clear()
    status, answer, _ = gateway.ask("POST", "/v1/caption", data, {"Content-Type": content_type})
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert gateway.upstream.asked == []


@pytest.mark.parametrize("lost", [1, 4, 5, 7, 12])
def test_a_form_that_was_cut_off_is_refused_and_not_answered_in_part(gateway: Running, lost: int) -> None:
    gateway.upstream.asked.clear()
    data = form(('name="image"; filename="a"', b"picture"), ('name="adapter"', b"french"))
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert data.endswith(b"french\r\n--x--\r\n")
    cut = data[: -2 - lost]  # behind the last boundary anything may come, and nothing
    for given, said in ((cut, "last boundary"), (b"", "last boundary")):
        status, answer, _ = gateway.ask("POST", "/v1/caption", given, kind)
        assert (status, said in answer["error"]["message"]) == (400, True), answer
    assert gateway.upstream.asked == []
    assert gateway.ask("POST", "/v1/caption", data[:-2], kind)[0] == 200
    assert gateway.upstream.asked[0].settings.adapter == "french"


def test_texts_of_a_form_are_utf8_whatever_they_call_themselves(gateway: Running) -> None:
    gateway.upstream.asked.clear()
    kind = {"Content-Type": "multipart/form-data; boundary=x; charset=us-ascii"}
    assert gateway.ask("POST", "/v1/query", form(('name="question"', "Où?".encode())), kind)[0] == 200
    assert gateway.upstream.asked[0].arguments == {"question": "Où?"}


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-origin", 200), ("none", 200)])
def test_a_form_of_another_sites_page_is_refused(gateway: Running, site: str, status: int) -> None:
    gateway.upstream.asked.clear()
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Sec-Fetch-Site": site}
    assert gateway.ask("POST", "/v1/query", form(('name="question"', b"?")), headers)[0] == status
    assert len(gateway.upstream.asked) == (status == 200)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://elsewhere.example"}, 403),
        # What browsers add themselves is no proof.
        ({"Origin": "http://elsewhere.example", "Authorization": "Basic YTpi"}, 403),
        ({"Origin": "http://elsewhere.example:8080", "Host": "elsewhere.example.evil:8080"}, 403),
        ({"Origin": "null"}, 403),  # of a sandboxed frame, or of a page that tells nobody who it is
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "null", "Host": ""}, 403),
        ({"Origin": "http://gpu-box:8080", "Host": "gpu-box:8080"}, 200),
        ({"Origin": "http://GPU-box", "Host": "gpu-BOX:8080"}, 200),
        ({"Origin": "http://[::1]:3000", "Host": "[::1]:8080"}, 200),
        ({"Origin": "http://through.a.proxy", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://through.a.proxy", "X-Requested-With": "playground"}, 200),
        (
            {"Origin": "http://elsewhere.example", "X-Requested-With": "a", "Sec-Fetch-Site": "cross-site"},
            403,
        ),
    ],
)
def test_where_a_browser_says_no_site_the_host_of_a_forms_page_counts(
    gateway: Running, headers: dict[str, str], status: int
) -> None:
    gateway.upstream.asked.clear()
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    asked = gateway.ask("POST", "/v1/query", form(('name="question"', b"?")), {**kind, **headers})
    assert asked[0] == status, asked
    assert len(gateway.upstream.asked) == (status == 200)


def test_a_form_in_another_charset_is_refused(gateway: Running) -> None:
    kind = "multipart/form-data; boundary=x; charset=punycode"
    status, answer, _ = gateway.ask("POST", "/v1/query", form(('name="a"', b"a")), {"Content-Type": kind})
    assert (status, "punycode" in answer["error"]["message"]) == (415, True)


def test_a_large_file_of_a_form_arrives_whole(gateway: Running) -> None:
    picture = b"\r\n--x" + bytes(range(256)) * 3900
    gateway.upstream.asked.clear()
    data = form(('name="image"; filename="a.png"', picture), boundary=b"long-boundary")
    kind = "multipart/form-data; boundary=long-boundary"
    assert gateway.ask("POST", "/v1/caption", data, {"Content-Type": kind})[0] == 200
    assert gateway.upstream.asked[0].image == picture


@pytest.mark.parametrize(
    ("image", "status"),
    [
        (base64.b64encode(b"a" * 1_000_000).decode(), 200),
        (base64.b64encode(b"a" * 1_000_001).decode(), 413),
        (base64.b64encode(b"a" * 5000).decode().replace("WFh", "WF\r\nh"), 200),
        (" QUJD ", 200),
        ("QUJD!", 400),
        ("QUJ", 400),
        ("QUI=QUI=", 400),
        ("====", 400),
        ("data:image/png;base64,", 400),
        ("data:image/png,QUJD", 400),
        ("", 400),
        ("file:///etc/passwd", 400),
        ("\u00e9", 400),
        (7, 400),
        (["QUJD"], 400),
        ({"url": "QUJD"}, 400),
    ],
    ids=lambda value: str(value)[:20],
)
def test_base64_is_read_strictly(gateway: Running, image: object, status: int) -> None:
    found, answer, _ = gateway.post("/v1/caption", {"image_url": image})
    assert found == status, answer
    if status != 200:
        wanted = "payload_too_large" if status == 413 else "image_decode_failed"
        assert (answer["error"]["code"], answer["error"]["param"]) == (wanted, "image_url")


def test_a_file_over_the_limit_is_refused_whichever_way_it_comes(gateway: Running) -> None:
    data = form(('name="image"; filename="a"', b"a" * 1_000_001))
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    status, answer, _ = gateway.ask("POST", "/v1/caption", data, kind)
    assert (status, answer["error"]["code"]) == (413, "payload_too_large")


def test_large_bodies_together_have_a_limit_that_small_ones_pass_by() -> None:
    picture = base64.b64encode(b"a" * 900_000).decode()
    with running(max_open_bytes=1_700_000) as gateway:
        gateway.upstream.scripts = [endless]
        with socket.create_connection(("127.0.0.1", gateway.port)) as door:
            body = b'{"image_url": "' + picture.encode() + b'"}'
            door.sendall(head(f"Content-Length: {len(body)}", path="/v1/caption") + body)
            while not gateway.upstream.asked:
                pass
            status, answer, headers = gateway.post("/v1/caption", {"image_url": picture})
            assert status == 429  # of this caller or of all, by how much of the body has come
            assert answer["error"]["code"] in ("too_many_at_once", "overloaded")
            assert int(headers["retry-after"]) >= 1
            assert gateway.post("/v1/query", {"question": "?"})[0] == 200
        assert gateway.upstream.answers[0].is_cancelled.wait(60)
        while gateway.house.memory.num_bytes:
            pass  # the leaver's share comes back as soon as it has been noticed
        assert gateway.post("/v1/caption", {"image_url": picture})[0] == 200
