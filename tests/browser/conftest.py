"""A browser for the tests of one file, and a visitor for each of them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """For one file: Playwright's event loop must not be there when other tests run theirs."""
    from visitor import chromium

    with chromium() as it:
        yield it


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens the page. Whatever it does in the test, at the end nothing may have gone wrong unseen."""
    from visitor import Visitor

    visitors = []

    def open_page(url: str, **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        visitors.append(Visitor(context.new_page(), url))
        return visitors[-1]

    yield open_page
    complaints = [complaint for visitor in visitors for complaint in visitor.complaints()]
    for visitor in visitors:
        visitor.page.context.close()
    assert complaints == []
