"""How a visitor asks, by mouse, by keyboard or on a phone, and what is said when it fails."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_server import Running, failing, running
from triton_server import until

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.protocol.errors import BadImage, Overloaded
from kestrel_gateway.admission.key_file import make_key

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
ROTATED = ROOT / "tests/golden/md2/images/modes/exif_rot6.jpg"
Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running(max_body_bytes=2 * 2**20) as it:
        yield it


@pytest.fixture
def url(gateway: Running) -> str:
    return f"http://localhost:{gateway.port}/"


def test_settings_are_sent_with_the_question(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.uncheck("#stream")
    visitor.ask("query", "Why?", temperature=0.5, top_p=0.9, max_tokens=7, seed=3)
    visitor.answered()
    visitor.ask("detect", "thing", max_objects=2)
    visitor.page.wait_for_selector(".found")
    visitor.choose("caption")
    visitor.page.click("text=Short")
    visitor.page.click("#send")
    until(lambda: [it.skill for it in gateway.upstream.asked[-3:]] == ["query", "detect", "caption"])
    query, detect, caption = gateway.upstream.asked[-3:]
    found = query.settings
    assert (found.temperature, found.top_p, found.max_tokens, found.seed) == (0.5, 0.9, 7, 3)
    assert (query.arguments, query.stream) == ({"question": "Why?"}, False)
    assert (detect.settings.max_objects, detect.settings.max_tokens) == (2, None)
    assert caption.arguments == {"length": "short"}


def test_a_picture_is_sent_as_its_file_is(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.take(ROTATED)
    visitor.ask("caption")
    visitor.answered()
    assert gateway.upstream.asked[-1].image == ROTATED.read_bytes()


def test_a_picture_is_shown_upright(url: str, visit: Visit) -> None:
    """Its coordinates are those of the upright picture, so that is what marks must lie on."""
    height, width, _ = decode_image(ROTATED.read_bytes(), ImageLimits()).shape
    visitor = visit(url)
    visitor.take(ROTATED)
    assert visitor.text("#picture-note").endswith(f"{width} × {height}")  # noqa: RUF001
    [shown], [marks] = visitor.boxes("#picture"), visitor.boxes("#marks")
    assert abs(shown["width"] / shown["height"] - width / height) < 0.01
    assert all(abs(shown[side] - marks[side]) < 0.1 for side in ("left", "top", "right", "bottom"))


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_a_picture_can_be_dropped_or_pasted(gateway: Running, url: str, visit: Visit, way: str) -> None:
    visitor = visit(url)
    visitor.page.evaluate(
        """async way => {
            const data = new DataTransfer();
            const blob = await (await fetch("/samples/sign.png")).blob();
            data.items.add(new File([blob], "mine.png", { type: "image/png" }));
            const event = way === "drop"
                ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
                : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
            document.getElementById("stage").dispatchEvent(event);
        }""",
        way,
    )
    visitor.page.wait_for_selector("#picture-note:has-text('mine.png')")
    visitor.ask("caption")
    visitor.answered()
    assert gateway.upstream.asked[-1].image == (ROOT / "client/samples/sign.png").read_bytes()


def test_a_file_that_is_no_picture_or_too_large_is_refused_before_it_is_sent(
    gateway: Running, url: str, visit: Visit, tmp_path: Path
) -> None:
    words, large = tmp_path / "notes.png", tmp_path / "large.png"
    words.write_text("no picture")
    large.write_bytes(bytes(3 * 2**20))
    visitor = visit(url)
    visitor.page.set_input_files("#file", str(words))
    visitor.page.wait_for_selector("#problem:not([hidden])")
    assert visitor.text("#problem strong") == "notes.png is not a picture that this browser can show."
    visitor.page.set_input_files("#file", str(large))
    visitor.page.wait_for_selector("#problem:has-text('large.png')")
    assert "large.png has 3.0 MB; this server takes pictures up to 1.0 MB." in visitor.text("#problem")
    assert visitor.text("#picture-note").startswith("shapes.png")
    assert visitor.sent == []


def test_without_a_picture_only_questions_are_sent(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.click("#remove")
    visitor.ask("caption")
    assert visitor.text("#problem strong") == "Caption needs a picture: drop, paste or choose one."
    assert visitor.sent == []
    visitor.ask("query")  # as the page proposes
    visitor.answered()
    assert gateway.upstream.asked[-1].arguments == {"question": "What can you do?"}
    assert gateway.upstream.asked[-1].image is None


def test_an_error_is_a_sentence_that_says_what_to_do(gateway: Running, url: str, visit: Visit) -> None:
    gateway.upstream.scripts = [failing(BadImage("the picture cannot be read; its file is damaged"))]
    visitor = visit(url)
    visitor.ask("caption")
    visitor.page.wait_for_selector("#problem:not([hidden])")
    assert visitor.text("#problem strong") == "The picture cannot be read; its file is damaged."
    gateway.upstream.scripts = [failing(Overloaded("256 requests wait already"))]
    visitor.page.click("#send")
    visitor.page.wait_for_selector("text=256 requests wait already.")
    assert "Ask again in 1 s." in visitor.text("#problem")
    assert not visitor.page.is_visible("#answer")
    visitor.page.click("#problem button")
    visitor.answered()
    assert not visitor.page.is_visible("#problem")


def test_a_server_that_is_gone_is_told_of(url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.route("**/v1/*", lambda route: route.abort())
    visitor.ask("caption")
    visitor.page.wait_for_selector("text=The server cannot be reached.")


def test_a_key_is_asked_for_and_kept_in_memory_alone(visit: Visit, tmp_path: Path) -> None:
    key, lines = make_key("me")
    (tmp_path / "keys.toml").write_text(lines)
    with running(api_keys=tmp_path / "keys.toml") as gateway:
        visitor = visit(f"http://localhost:{gateway.port}/")
        visitor.ask("caption")
        for text in ("wrong", key):
            visitor.page.wait_for_selector("#key:focus")
            visitor.page.keyboard.type(text)
            visitor.page.keyboard.press("Enter")
            if text == "wrong":
                visitor.page.wait_for_selector("#problem:has-text('Enter a key that this server knows.')")
        visitor.answered()
        assert not visitor.page.is_visible("#problem")
        sent = [request.headers.get("authorization") for request in visitor.sent]
        assert sent == [None, "Bearer wrong", f"Bearer {key}"]
        kept = visitor.page.evaluate("[{...localStorage}, {...sessionStorage}, document.cookie]")
        assert kept == [{}, {}, ""]
        assert "$KESTREL_API_KEY" in visitor.text("#code")
        assert key not in visitor.page.content()


def test_everything_can_be_done_by_keyboard(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url)
    press = visitor.page.keyboard.press

    def tab_to(selector: str) -> None:
        for _ in range(25):
            press("Tab")
            if visitor.page.locator(f"{selector}:focus").count():
                # What has the focus can be seen to have it.
                assert (
                    visitor.page.eval_on_selector(selector, "one => getComputedStyle(one).outlineStyle")
                    != "none"
                )
                return
        raise AssertionError(f"Tab never reaches {selector}")

    tab_to("#tabs-query")
    press("ArrowRight")
    press("ArrowRight")
    assert visitor.page.locator("#tabs-detect:focus").count() == 1
    tab_to("#prompt")
    press("Control+a")
    visitor.page.keyboard.type("a cat")
    press("Enter")
    visitor.answered()
    assert gateway.upstream.asked[-1].arguments == {"object": "a cat"}
    assert visitor.text("#status").startswith("Answered in")
    tab_to(".found button")
    assert visitor.page.locator("#marks .lit").count() == 1
    tab_to("#languages-curl")
    press("End")
    assert "tritonclient.grpc" in visitor.text("#code")
    tab_to("#copy")
    tab_to(".entries button")
    press("Enter")
    assert visitor.text("#status").startswith("Shown again")


def test_nothing_overflows_a_phone(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    for skill in ("query", "caption", "detect", "point", "segment"):
        words = "" if skill == "caption" else "averylongwordwithoutanyspace" * 4
        visitor.ask(skill, words)
        visitor.page.wait_for_selector("#send:has-text('Ask')")
        assert visitor.width() == 360, skill
    visitor.page.click("#settings summary")
    for name in ("python", "openai", "tritonclient"):
        visitor.page.click(f"#languages-{name}")
        assert visitor.width() == 360, name
    # A finger needs room.
    assert [box for box in visitor.boxes("button, summary") if box["width"] and box["height"] < 24] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_light_and_in_the_dark(
    gateway: Running, url: str, visit: Visit, scheme: str
) -> None:
    visitor = visit(url, color_scheme=scheme, reduced_motion="reduce")
    visitor.ask("detect", "thing")
    visitor.answered()
    visitor.page.mouse.move(1, 1)
    pairs = visitor.page.evaluate(CONTRASTS)
    assert (pairs["body"]["ground"] < 0.1) == (scheme == "dark")
    assert {name: pair for name, pair in pairs.items() if pair["contrast"] < 4.5} == {}


# The contrast of an element's words with what is behind them, as WCAG computes it.
CONTRASTS = """() => {
    const parse = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
    const behind = one => {
        for (; one; one = one.parentElement) {
            const colour = parse(getComputedStyle(one).backgroundColor);
            if (colour.length < 4 || colour[3] > 0.99) return light(colour);
        }
        return 1;
    };
    const found = {};
    for (const name of ["body", "#model", "#send", "#tabs-query", "#tabs-detect", ".note", ".count", ".place",
                        ".numbers dt", ".numbers dd", "#code", ".asked b", ".gave", ".ideas button"]) {
        const one = document.querySelector(name);
        const [ink, ground] = [light(parse(getComputedStyle(one).color)), behind(one)];
        found[name] = { ground, contrast: (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05) };
    }
    return found;
}"""


def test_nothing_moves_for_those_who_asked_for_that(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url, reduced_motion="reduce")
    moving = visitor.page.evaluate(
        "[...document.querySelectorAll('*')].map(one => getComputedStyle(one))"
        ".filter(style => parseFloat(style.transitionDuration) > 0).length"
    )
    assert moving == 0
