"""The README keeps its word: its table of options is the code's, and what it names exists."""

import re
from dataclasses import fields
from pathlib import Path

from kestrel_core.config import RuntimeConfig

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_table_of_options_is_the_codes() -> None:
    rows = [
        f"| `KESTREL_{option.name.upper()}` | {_shown(option.default)} | {option.metadata['meaning']} |"
        for option in fields(RuntimeConfig)
    ]
    table = re.findall(r"^\| `KESTREL_.*$", README, re.MULTILINE)
    assert table == rows, "README.md needs these rows:\n" + "\n".join(rows)


def test_every_file_it_links_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_make_target_it_shows_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", README)) <= targets


def _shown(value: object) -> str:
    return "none" if value is None else f"`{value}`"
