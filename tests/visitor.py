"""Somebody who opens the playground in Chromium, and notes whatever should not happen on the way."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

# As root in a container there is no sandbox; and Chromium itself would look for its maker's hosts.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP *.test 127.0.0.1",  # http to another name than localhost's
]


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A page, with the words of the tests for what a person does and sees."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.errors: list[str] = []
        self.addresses: list[str] = []
        self.sent: list[Any] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._heard)
        page.on("request", self._asked)
        page.goto(url)
        page.wait_for_selector("#frame:not([hidden])")

    def choose(self, skill: str) -> None:
        self.page.click(f"#tabs-{skill}")

    def ask(self, skill: str, words: str = "", **settings: object) -> None:
        self.choose(skill)
        if words:
            self.page.fill("#prompt", words)
        if settings and not self.page.locator("#settings[open]").count():
            self.page.click("#settings summary")
        for name, value in settings.items():
            self.page.fill(f"#{name}", str(value))
        self.page.click("#send")

    def answered(self) -> dict[str, Any]:
        """The document of the answer that is shown, once it is."""
        self.page.wait_for_selector("#answer .raw")
        return dict(json.loads(self.page.text_content("#answer .raw pre") or ""))

    def text(self, selector: str) -> str:
        return self.page.text_content(selector) or ""

    def boxes(self, selector: str) -> list[dict[str, float]]:
        """Where elements are on the screen, their lines not counted."""
        found = self.page.eval_on_selector_all(
            selector, "all => all.map(one => one.getBoundingClientRect().toJSON())"
        )
        return [dict(box) for box in found]

    def width(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def take(self, file: Path) -> None:
        self.page.set_input_files("#file", str(file))
        self.page.wait_for_selector(f"#picture-note:has-text('{file.name}')")

    def complaints(self) -> list[str]:
        """Errors in the console, violations of the policy among them, and requests to anybody else."""
        home = urlsplit(self.page.url).netloc
        others = [url for url in self.addresses if urlsplit(url).scheme in ("http", "https")]
        return self.errors + [url for url in others if urlsplit(url).netloc != home]

    def _heard(self, message: Any) -> None:
        # A refused request is an error to Chromium; the page tells of it in words.
        if message.type in ("error", "warning") and "/v1/" not in message.location["url"]:
            self.errors.append(message.text)

    def _asked(self, request: Any) -> None:
        self.addresses.append(request.url)
        if "/v1/" in request.url and request.method == "POST":
            self.sent.append(request)
