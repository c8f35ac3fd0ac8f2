"""The files of the playground, over HTTP: what is served, how it may be used, and what is not served."""

import re
from collections.abc import Iterator

import pytest
from gateway_server import Running, running

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/playground/main.js", "text/javascript; charset=utf-8"),
        ("/playground/page.css", "text/css; charset=utf-8"),
        ("/playground/icon.svg", "image/svg+xml"),
    ],
)
def test_a_file_comes_with_its_type_and_its_policy(gateway: Running, path: str, kind: str) -> None:
    status, text, headers = gateway.get(path)
    assert (status, headers["content-type"]) == (200, kind)
    assert text
    assert headers["content-security-policy"] == POLICY
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_a_file_that_is_known_is_not_sent_again(gateway: Running) -> None:
    _, _, headers = gateway.get("/playground/main.js")
    status, text, again = gateway.get("/playground/main.js", if_none_match=f'"other", W/{headers["etag"]}')
    assert (status, text, again["etag"]) == (304, "", headers["etag"])
    status, text, _ = gateway.get("/playground/main.js", if_none_match='"other"')
    assert status == 200 and text


def test_head_tells_the_size_alone(gateway: Running) -> None:
    _, page, _ = gateway.get("/")
    status, text, headers = gateway.ask("HEAD", "/", None, {})
    assert (status, text, headers["content-length"]) == (200, "", str(len(page.encode())))


@pytest.mark.parametrize(
    "path",
    [
        "/playground/pages.py",
        "/playground/",
        "/playground/../pages.py",
        "/playground/%2e%2e/pages.py",
        "/samples/",
        "/samples/..%2fREADME.md",
        "/index.html",
    ],
)
def test_nothing_else_is_served(gateway: Running, path: str) -> None:
    status, answer, _ = gateway.get(path)
    assert (status, answer["error"]["code"]) == (404, "not_found")


def test_the_page_is_told_what_it_cannot_know(gateway: Running) -> None:
    _, about, headers = gateway.get("/playground/about.json")
    samples = ["chart.png", "circles.png", "park.png", "shapes.png", "sign.png", "street.png"]
    assert about["samples"] == samples
    assert (about["grpc_port"], about["has_keys"]) == (1, False)
    assert about["max_picture_bytes"] == gateway.house.options.max_image_bytes
    assert headers["content-security-policy"] == POLICY


def test_every_file_that_a_file_names_is_there(gateway: Running) -> None:
    """A module that is not found would only be missed in a browser."""
    _, page, _ = gateway.get("/")
    wanted = set(re.findall(r'(?:src|href)="(/playground/[^"]+)"', page))
    seen: set[str] = set()
    while wanted - seen:
        path = (wanted - seen).pop()
        seen.add(path)
        status, text, _ = gateway.get(path)
        assert status == 200, path
        if path.endswith(".js"):
            wanted |= {f"/playground/{name}" for name in re.findall(r'from "\./([^"]+)"', text)}
    assert len(seen) > 8
