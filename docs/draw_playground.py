"""Takes `docs/playground.png`, with which the README opens: the page with an answer of the bundled model.

make serve                                  # in another shell
.venv/bin/python docs/draw_playground.py    # opens it in Chromium, clicks, and takes the picture
"""

import argparse
import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

PICTURE = Path(__file__).with_name("playground.png")
SIZE = {"width": 1240, "height": 800}
MAX_BYTES = 250_000


def main(url: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE, device_scale_factor=1.5).new_page()
        for _ in range(2):  # the second time everything is warm, as on a server that is in use
            page.goto(url)
            ask(page, "chart", "query", "Which day has the most visitors?")
            ask(page, "park", "query", "What's in this image?")
            ask(page, "park", "detect", "everything")
        page.hover("#tabs-detect")
        page.wait_for_timeout(500)  # for what still fades
        shot = page.screenshot()
        browser.close()
    save(shot)


def ask(page: Page, sample: str, skill: str, words: str) -> None:
    page.click(f"[data-sample='{sample}.png']")
    page.wait_for_selector(f"#picture-note:has-text('{sample}')")
    page.click(f"#tabs-{skill}")
    page.fill("#prompt", words)
    before = page.locator(".entries li").count()
    page.click("#send")
    page.wait_for_selector(f".entries li >> nth={before}")


def save(shot: bytes) -> None:
    """With 256 colours: the page has few, and the file is a third as large."""
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    few = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(PICTURE, optimize=True)
    assert PICTURE.stat().st_size <= MAX_BYTES, "too large for a README"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://localhost:8080/", help="where the page is")
    main(parser.parse_args().url)
