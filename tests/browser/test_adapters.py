"""The menu of adapters: what the server lists, sent with every question, and part of copied code."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from gateway_server import Running, running

from kestrel_core.protocol.about import About

pytestmark = pytest.mark.browser

ABOUT = About("moondream-tiny", "1.0", 2048, (), ("french", "org/birds@3"))
Visit = Callable[..., Any]


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        serve(it, *ABOUT.adapters)
        yield it


@pytest.fixture
def url(gateway: Running) -> str:
    return f"http://localhost:{gateway.port}/"


def serve(gateway: Running, *adapters: str) -> None:
    gateway.house.upstream.replicas[0].about = replace(ABOUT, adapters=adapters)


def options(visitor: Any) -> list[str]:
    return [str(text) for text in visitor.page.locator("#adapter option").all_text_contents()]


def test_there_is_no_menu_where_nothing_is_to_choose(gateway: Running, url: str, visit: Visit) -> None:
    serve(gateway)
    visitor = visit(url)
    assert visitor.page.locator("#adapter-line").is_hidden()
    visitor.ask("query", "Why?")
    visitor.answered()
    assert gateway.upstream.asked[-1].settings.adapter is None


def test_the_chosen_adapter_is_asked_by_every_skill(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url)
    assert options(visitor) == ["none", "french", "org/birds@3"]
    visitor.page.select_option("#adapter", "french")
    for skill in ("query", "caption", "detect", "point"):
        visitor.ask(skill, "" if skill == "caption" else "thing")
        visitor.page.wait_for_selector("#send:has-text('Ask')")
    asked = gateway.upstream.asked
    assert [(it.skill, it.settings.adapter) for it in asked] == [
        (skill, "french") for skill in ("query", "caption", "detect", "point")
    ]


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("curl", "--form-string adapter=org/birds@3"),
        ("python", 'adapter="org/birds@3"'),
        ("openai", 'model="moondream/org/birds@3"'),
        ("tritonclient", 'tensor("ADAPTER", "org/birds@3".encode(), object, "BYTES")'),
    ],
)
def test_copied_code_names_the_adapter(url: str, visit: Visit, language: str, words: str) -> None:
    visitor = visit(url)
    visitor.page.click(f"#languages-{language}")
    assert "birds" not in visitor.text("#code")
    visitor.page.select_option("#adapter", "org/birds@3")
    assert words in visitor.text("#code")
    visitor.page.select_option("#adapter", "")
    assert "birds" not in visitor.text("#code")


def test_the_address_remembers_it_even_where_it_is_not_listed(url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.select_option("#adapter", "org/birds@3")
    visitor.page.reload()
    visitor.page.wait_for_selector("#adapter-line:not([hidden])")
    assert visitor.page.input_value("#adapter") == "org/birds@3"
    visitor.page.select_option("#adapter", "")
    assert visitor.page.url == url
    other = visit(f"{url}?adapter=01JX@200")
    assert other.page.input_value("#adapter") == "01JX@200"


def test_by_keyboard_alone(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.focus("#stream")
    visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.focus("#prompt")
    visitor.page.keyboard.press("Enter")
    visitor.answered()
    assert gateway.upstream.asked[-1].settings.adapter == "french"


def test_an_earlier_question_comes_back_with_its_adapter(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url)
    visitor.page.select_option("#adapter", "french")
    visitor.ask("query", "Why?")
    visitor.answered()
    visitor.page.select_option("#adapter", "")
    visitor.page.click(".entries button")
    assert visitor.page.input_value("#adapter") == "french"


def test_what_appears_while_the_page_is_open_is_offered(gateway: Running, url: str, visit: Visit) -> None:
    visitor = visit(url)
    serve(gateway, "french", "italian")
    with visitor.page.expect_response("**/v1/models"):
        visitor.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    visitor.page.wait_for_selector("#adapter option:has-text('italian')", state="attached")
    assert options(visitor) == ["none", "french", "italian"]
