"""What the page shows of an answer: text as it grows, marks where the JSON says, words that stay words."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from gateway_server import Running, endless, running

from kestrel_core.protocol.messages import Chunk, Request

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
expect = pytest.importorskip("playwright.sync_api", reason="drives a browser").expect


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


@pytest.fixture
def url(gateway: Running) -> str:
    return f"http://localhost:{gateway.port}/"


class Gate:
    """A script that gives a piece each time it is opened, and ends when it is opened once more."""

    def __init__(self, *pieces: tuple[str, str]) -> None:
        self._pieces = pieces
        self._allowed = threading.Semaphore(0)

    def open(self) -> None:
        self._allowed.release()

    async def __call__(self, request: Request) -> AsyncIterator[Chunk]:
        for index, (kind, text) in enumerate(self._pieces):
            await self._opened()
            yield Chunk(text, index + 1, kind)  # type: ignore[arg-type]
        await self._opened()

    async def _opened(self) -> None:
        while not self._allowed.acquire(blocking=False):
            await asyncio.sleep(0.005)


@pytest.fixture
def outputs(gateway: Running) -> Iterator[dict[str, Any]]:
    """What each skill answers, for one test."""
    before = dict(gateway.upstream.outputs)
    yield gateway.upstream.outputs
    gateway.upstream.outputs.update(before)


def test_text_grows_piece_by_piece(gateway: Running, url: str, visit: Visit, outputs: dict[str, Any]) -> None:
    outputs["caption"] = {"caption": "a red circle"}
    gate = Gate(("text", "a "), ("text", "red "), ("text", "circle"))
    gateway.upstream.scripts = [gate]
    visitor = visit(url)
    visitor.ask("caption")
    for seen in ("a ", "a red ", "a red circle"):
        gate.open()
        expect(visitor.page.locator(".text.growing")).to_have_text(seen.strip())
    gate.open()
    assert visitor.answered()["caption"] == visitor.text(".text") == "a red circle"
    assert gateway.upstream.asked[-1].stream


def test_a_thought_shows_its_points_when_its_words_are_hovered(
    gateway: Running, url: str, visit: Visit, outputs: dict[str, Any]
) -> None:
    # An emoji is one letter to the server and two to JavaScript.
    grounding = [{"start_idx": 8, "end_idx": 14, "points": [[0.25, 0.5], [0.75, 0.5]]}]
    reasoning = {"text": "\N{EYES} I see horses, 2 in all.", "grounding": grounding}
    outputs["query"] = {"answer": "2", "reasoning": reasoning}
    gate = Gate(("reasoning", "\N{EYES} I see "), ("reasoning", "horses, 2 in all."), ("text", "2"))
    gateway.upstream.scripts = [gate]
    visitor = visit(url)
    visitor.page.check("#reasoning")
    visitor.ask("query", "How many horses?")
    gate.open()
    expect(visitor.page.locator(".reasoning")).to_have_text("\N{EYES} I see")
    for _ in range(3):
        gate.open()
    visitor.answered()
    assert (visitor.text(".phrase"), visitor.text(".text")) == ("horses", "2")
    assert visitor.page.locator("#marks .lit").count() == 0
    visitor.page.hover(".phrase")
    assert visitor.page.locator("#marks .lit").count() == 2
    visitor.page.mouse.move(1, 1)
    visitor.page.focus(".phrase")
    assert visitor.page.locator("#marks .lit").count() == 2
    assert gateway.upstream.asked[-1].arguments["reasoning"] is True


@pytest.mark.parametrize("width", [360, 900, 1600])
def test_marks_are_at_the_pixels_that_the_answer_names(
    url: str, visit: Visit, outputs: dict[str, Any], width: int
) -> None:
    boxes = [
        {"x_min": 0.0721, "y_min": 0.0993, "x_max": 0.3282, "y_max": 0.44},
        {"x_min": 0.0, "y_min": 0.0, "x_max": 1.0, "y_max": 1.0},
    ]
    outputs["detect"] = {"objects": boxes}
    outputs["point"] = {"points": [{"x": 0.8301, "y": 0.2197}]}
    path = "M 0 0 L 1 0 L 1 1 L 0 1 Z M 0.25 0.25 L 0.75 0.25 L 0.75 0.75 Z"
    outputs["segment"] = {"segments": [{"svg_path": path, "bbox": boxes[0]}]}
    visitor = visit(url, viewport={"width": width, "height": 800})
    [picture] = visitor.boxes("#picture")
    visitor.ask("detect", "thing")
    visitor.answered()
    for box, drawn in zip(boxes, visitor.boxes(".mark.box .shape"), strict=True):
        assert_at(drawn, box, picture)
    visitor.ask("point", "thing")
    visitor.page.wait_for_selector(".mark.point")
    [dot] = visitor.boxes(".mark.point .dot")
    assert abs((dot["left"] + dot["right"]) / 2 - picture["left"] - 0.8301 * picture["width"]) <= 1
    assert abs((dot["top"] + dot["bottom"]) / 2 - picture["top"] - 0.2197 * picture["height"]) <= 1
    visitor.ask("segment", "thing")
    visitor.page.wait_for_selector(".mark.outline")
    [outline] = visitor.boxes(".mark.outline .shape")
    assert_at(outline, boxes[0], picture)


def assert_at(drawn: dict[str, float], box: dict[str, float], picture: dict[str, float]) -> None:
    """Within a pixel of where the fractions say."""
    for side, name, start, size in (
        ("left", "x_min", "left", "width"),
        ("right", "x_max", "left", "width"),
        ("top", "y_min", "top", "height"),
        ("bottom", "y_max", "top", "height"),
    ):
        assert abs(drawn[side] - (picture[start] + box[name] * picture[size])) <= 1, (side, drawn, picture)


def test_a_result_and_its_mark_light_up_together(url: str, visit: Visit, outputs: dict[str, Any]) -> None:
    box = {"x_min": 0.1, "y_min": 0.1, "x_max": 0.4, "y_max": 0.4}
    other = {"x_min": 0.5, "y_min": 0.5, "x_max": 0.9, "y_max": 0.9}
    outputs["detect"] = {"objects": [box, other]}
    visitor = visit(url)
    visitor.ask("detect", "thing")
    visitor.answered()
    assert visitor.text(".found li:nth-child(2) .place") == "320, 240 – 576, 432"  # noqa: RUF001
    visitor.page.hover(".found li:nth-child(2) button")
    assert visitor.page.locator("#marks .lit").get_attribute("data-index") == "1"
    visitor.page.hover(".mark.box[data-index='0'] .shape")
    assert visitor.page.locator(".found .lit .index").text_content() == "1"


def test_markup_in_an_answer_or_a_label_stays_text(url: str, visit: Visit, outputs: dict[str, Any]) -> None:
    evil = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"
    reasoning = {"text": evil, "grounding": [{"start_idx": 0, "end_idx": 9, "points": [[0.5, 0.5]]}]}
    outputs["query"] = {"answer": evil, "reasoning": reasoning}
    outputs["segment"] = {"segments": [{"svg_path": '"><script>', "bbox": dict.fromkeys(BOX, 0.5)}]}
    outputs["detect"] = {"objects": [{**dict.fromkeys(BOX, 0.5), "x_max": 0.9, "y_max": 0.9}]}
    visitor = visit(url)
    visitor.ask("query", evil)
    visitor.answered()
    assert visitor.text(".text") == visitor.text(".reasoning") == evil
    assert evil in visitor.text(".entries")
    visitor.ask("detect", evil)
    visitor.page.wait_for_selector(".found")
    assert visitor.text(".mark .tip text") == evil
    assert evil in visitor.text(".count")
    assert visitor.page.locator("#answer img, #answer script, .mark img, .entries script").count() == 0
    assert visitor.page.evaluate("window.hit") is None


BOX = ("x_min", "y_min", "x_max", "y_max")


@pytest.mark.parametrize("how", ["button", "Escape"])
def test_cancelling_ends_the_request_at_the_server(
    gateway: Running, url: str, visit: Visit, how: str
) -> None:
    gateway.upstream.scripts = [endless]
    visitor = visit(url)
    visitor.ask("caption")
    expect(visitor.page.locator(".text.growing")).to_have_text("a")
    assert visitor.text("#send") == "Cancel"
    if how == "button":
        visitor.page.click("#send")
    else:
        visitor.page.keyboard.press("Escape")
    assert gateway.upstream.answers[-1].is_cancelled.wait(60)
    assert (visitor.text("#send"), visitor.text(".text")) == ("Ask", "a ")
    assert not visitor.page.is_visible("#problem")
    visitor.page.click("#send")
    assert visitor.answered()["caption"]


def test_what_was_asked_is_listed_and_shown_again(url: str, visit: Visit, outputs: dict[str, Any]) -> None:
    outputs["query"] = {"answer": "green"}
    visitor = visit(url)
    visitor.ask("query", "What color?", seed=7)
    visitor.answered()
    visitor.page.click("[data-sample='sign.png']")
    visitor.ask("detect", "thing")
    visitor.page.wait_for_selector(".found")
    assert visitor.page.locator(".entries li").count() == 2
    visitor.page.click(".entries li:nth-child(2) button")
    assert visitor.text(".text") == "green"
    assert visitor.page.input_value("#prompt") == "What color?"
    assert visitor.page.input_value("#seed") == "7"
    assert visitor.text("#picture-note").startswith("shapes.png")
    assert visitor.page.locator(".mark").count() == 0
    assert visitor.page.get_attribute("#tabs-query", "aria-selected") == "true"
    visitor.page.reload()
    visitor.page.wait_for_selector("#frame:not([hidden])")
    assert not visitor.page.is_visible("#history"), "a visit is over when its page is left"


def test_timings_and_tokens_are_told(url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.ask("caption")
    visitor.answered()
    told = " ".join(visitor.text("[aria-label='Timings and tokens']").split())
    for words in (
        "first token15 ms",
        "queue0.5 ms",
        "prefill13 ms",
        "decode45 ms",
        "in740",
        "cached730",
        "out3",
    ):
        assert words in told
