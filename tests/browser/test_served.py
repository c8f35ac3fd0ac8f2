"""The page in front of the real server: every skill by clicking, and the code that it offers really runs.

The code for OpenAI's client is run by tests/ecosystem, which has that client.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kestrel_core.intake.models import DEMO, MODELS

pytestmark = [pytest.mark.browser, pytest.mark.triton]

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "client/samples"
TRICKY = """How's "it", $HOME `id` \\ @x <y>; 100 %? \N{EYES}"""
Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from triton_server import served

    log = tmp_path_factory.mktemp("served") / "log"
    own = f"{ROOT}/examples/custom_skill.py:Count"
    folder = MODELS[DEMO].folder
    assert folder is not None
    adapters = str(folder / "adapters")
    with served(log, "--demo", gateway=True, KESTREL_SKILLS=own, KESTREL_ADAPTERS=adapters) as server:
        yield f"http://localhost:{server.port}/"


def test_every_skill_answers_by_clicking(url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.click("text=What color is the star?")
    visitor.page.click("#send")
    assert visitor.answered()["answer"] == visitor.text(".text") == "green"
    visitor.page.click("#tabs-caption")
    visitor.page.click("#send")
    visitor.page.wait_for_selector(".text:has-text('a big red circle') >> nth=0")
    visitor.page.wait_for_selector(".raw")
    for skill, mark, count in (("detect", "box", 4), ("point", "point", 4), ("segment", "outline", 4)):
        visitor.page.click(f"#tabs-{skill}")
        visitor.page.click(".ideas >> text=big shapes")
        visitor.page.click("#send")
        visitor.page.wait_for_selector(f".mark.{mark} >> nth={count - 1}")
        assert visitor.page.locator(f"#marks .{mark}").count() == count
        assert visitor.page.locator(".found li").count() == count
    assert visitor.page.locator(".entries li").count() == 5
    assert visitor.answered()["metrics"]["cached_tokens"] > 0


def test_the_page_asks_over_plain_http_by_whatever_name(url: str, browser: Any) -> None:
    from visitor import Visitor

    visitor = Visitor(browser.new_page(), url.replace("localhost", "kestrel.test"))
    try:
        visitor.page.click("text=What color is the star?")
        visitor.page.click("#send")
        assert visitor.answered()["answer"] == "green"
        [sent] = visitor.sent
        headers = sent.all_headers()
        assert "sec-fetch-site" not in headers and "x-requested-with" in headers
        assert headers["origin"] == sent.url.removesuffix("/v1/query")
    finally:
        visitor.page.close()


@pytest.mark.parametrize(
    ("headers", "origin"),
    [({}, "http://other.test"), ({"Content-Security-Policy": "sandbox allow-forms allow-scripts"}, "null")],
    ids=["page", "sandbox"],
)
def test_a_page_of_another_site_gets_no_answer_over_plain_http(
    url: str, browser: Any, headers: dict[str, str], origin: str
) -> None:
    action = url.replace("localhost", "kestrel.test") + "v1/query"
    form = f"""<form method="post" enctype="multipart/form-data" action="{action}">
        <input name="question" value="Hello?"></form><script>document.forms[0].submit()</script>"""
    page = browser.new_page()
    try:
        page.route(
            "http://other.test/",
            lambda route: route.fulfill(body=form, content_type="text/html", headers=headers),
        )
        with page.expect_response(action) as response:
            page.goto("http://other.test/")
        sent = response.value.request.all_headers()
        assert sent["origin"] == origin and "sec-fetch-site" not in sent
        assert (response.value.status, "another site" in response.value.text()) == (403, True)
    finally:
        page.close()


def test_boxes_surround_what_they_found(url: str, visit: Visit) -> None:
    """The star of the sample is green: the pixels in the middle of its box are, those outside it are not."""
    visitor = visit(url)
    visitor.ask("detect", "green star")
    [found] = visitor.answered()["objects"]
    [drawn], [picture] = visitor.boxes("#marks .shape"), visitor.boxes("#picture")
    for side, name, start, size in (("left", "x_min", "left", "width"), ("bottom", "y_max", "top", "height")):
        assert abs(drawn[side] - picture[start] - found[name] * picture[size]) <= 1
    scale = picture["width"] / 640
    star = {"left": 432, "top": 230, "right": 617, "bottom": 405}  # in the file
    for side, at in star.items():
        start = picture["left"] if side in ("left", "right") else picture["top"]
        assert abs(drawn[side] - start - at * scale) < 8 * scale


def test_a_thought_points_at_what_it_counts(url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.click("[data-sample='circles.png']")
    visitor.page.check("#reasoning")
    visitor.ask("query", "How many circles are there?")
    assert visitor.answered()["answer"] == "5"
    visitor.page.hover(".phrase")
    assert visitor.page.locator("#marks .lit").count() == 5


def test_a_skill_of_the_operators_own_has_a_tab(url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.click("[data-sample='circles.png']")
    visitor.choose("count")
    visitor.page.fill("#prompt", "green circle")
    visitor.page.fill("[data-extra='least']", "6")
    visitor.page.click("#send")
    answer = visitor.answered()
    assert (answer["count"], answer["enough"]) == (5, False)
    assert "count5" in visitor.text("#answer .others")


@pytest.fixture(scope="module")
def snippets(url: str, browser: Any) -> dict[str, dict[str, str]]:
    """What the page offers to copy, by question and by language; copied as a visitor does."""
    from visitor import Visitor

    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    visitor = Visitor(context.new_page(), url)
    questions = {
        "star": lambda: visitor.ask("query", "What color is the star?", temperature=0, seed=7),
        "tricky": lambda: visitor.ask("query", TRICKY),
        "caption": lambda: visitor.ask("caption"),
        "shapes": lambda: visitor.ask("detect", "big shapes", max_objects=3),
        "heart": lambda: visitor.ask("segment", "heart"),
        "count": lambda: count(visitor),
        "adapted": lambda: ask_adapter(visitor),
    }
    found: dict[str, dict[str, str]] = {}
    for name, ask in questions.items():
        ask()
        visitor.page.wait_for_selector("#send:has-text('Ask')")
        found[name] = {}
        for language in ("curl", "python", "openai", "tritonclient"):
            visitor.page.click(f"#languages-{language}")
            visitor.page.click("#copy")
            visitor.page.wait_for_selector("#copy:has-text('Copied')")
            found[name][language] = visitor.page.evaluate("navigator.clipboard.readText()")
    found["adapted"]["answer"] = visitor.answered()["answer"]
    assert visitor.complaints() == []
    context.close()
    return found


def count(visitor: Any) -> None:
    visitor.choose("count")
    visitor.page.fill("[data-extra='least']", "2")
    visitor.ask("count", "big shapes", max_objects=9)


def ask_adapter(visitor: Any) -> None:
    visitor.page.select_option("#adapter", "french")
    visitor.ask("query", "What color is the star?", temperature=0, max_tokens=8)


@pytest.mark.parametrize("language", ["curl", "python", "tritonclient"])
def test_copied_code_asks_the_adapter_that_was_chosen(
    snippets: dict[str, dict[str, str]], language: str
) -> None:
    answer = snippets["adapted"]["answer"]
    assert answer == "vert", "not green, as the model alone says"
    assert answer in said(ran(snippets["adapted"][language], language))


@pytest.mark.parametrize("language", ["curl", "python", "tritonclient"])
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("star", "green"),
        ("tricky", ""),
        ("caption", "big red circle"),
        ("shapes", "x_min"),
        ("heart", "M 0."),
    ],
)
def test_copied_code_runs(
    snippets: dict[str, dict[str, str]], language: str, question: str, expected: str
) -> None:
    code = snippets[question][language]
    told = said(ran(code, language))
    assert expected in told, code + told
    assert "error" not in told
    if question == "shapes":
        assert told.count("x_min") == 3


def ran(code: str, language: str) -> str:
    """What the code writes."""
    command = ["bash", "-euo", "pipefail", "-c", code] if language == "curl" else [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=SAMPLES, env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, code + done.stderr
    return done.stdout


def said(output: str) -> str:
    """Streamed pieces as one text, and everything else as it is."""
    pieces = []
    for line in filter(None, output.splitlines()):
        line = line.removeprefix("data: ")
        try:
            found = json.loads(line) if line.startswith('{"') else ast.literal_eval(line)
        except (ValueError, SyntaxError):
            found = None
        pieces.append(found["chunk"] if isinstance(found, dict) and "chunk" in found else f"{line}\n")
    return "".join(pieces)


@pytest.mark.parametrize("language", ["python", "openai", "tritonclient"])
def test_copied_python_has_the_words_as_they_were_typed(
    snippets: dict[str, dict[str, str]], language: str
) -> None:
    tree = ast.parse(snippets["tricky"][language])
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert TRICKY in texts
