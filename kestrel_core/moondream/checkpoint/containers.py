"""What foreign files hold, whatever they are for: torch archives, JSON, and what a failed download leaves.

No code in a file is ever run. `BadFile` is told by the rest of a sentence, whose first word is the file.
"""

import json
import pickle
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kestrel_core.protocol.names import shown

START_BYTES = 64  # enough for `refuse_placeholder`
# What torch began its files with before they were zip archives (1.6), and still does if it is told to.
OLD_START = pickle.dumps(torch.serialization.MAGIC_NUMBER, protocol=2)


class BadFile(Exception):
    """What is wrong with a file: `is empty; download it again`."""


def refuse_placeholder(start: bytes) -> None:
    """Refuse what a failed download leaves in place of a file, and say that it is one."""
    start = start.lstrip()
    if not start:
        raise BadFile("is empty; download it again")
    if start.startswith(b"version https://git-lfs"):
        raise BadFile("is a git-lfs pointer, not the file itself; fetch it with git lfs pull")
    if start[:5].lower() in (b"<!doc", b"<html"):
        raise BadFile("is an HTML page, not the file itself; download it again")


def parse_json(content: bytes) -> Any:
    refuse_placeholder(content[:START_BYTES])
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"is not valid JSON: {error}") from error


def torch_tensors(file: Path | BytesIO, inside: str | None = None) -> Mapping[str, Tensor]:
    """The tensors by name of what `torch.save` wrote. A path is mapped, unless its format is too old.
    They may be in a dict in the dict, under the name `inside`.
    """
    try:
        is_mapped = isinstance(file, Path) and not _is_old(file)
        content = torch.load(file, map_location="cpu", weights_only=True, mmap=is_mapped)
    except pickle.UnpicklingError as error:
        raise BadFile("holds more than tensors, maybe code, and is not loaded") from error
    except Exception as error:  # a damaged pickle can make its reader fail in any way
        reason = str(error).partition("\n")[0]
        raise BadFile(f"is no torch file, or only a part of one ({reason})") from error
    if inside is not None and isinstance(content, Mapping):
        content = content.get(inside, content)
    if not isinstance(content, Mapping) or not content:
        raise BadFile("holds no tensors by name; save a state_dict with torch.save")
    if strange := [
        shown(name) if isinstance(name, str | int) else f"a {type(name).__name__}"
        for name, value in content.items()
        if not (isinstance(name, str) and isinstance(value, Tensor))
    ]:
        raise BadFile(f"holds things that are no named tensors: {', '.join(strange)}; save a state_dict")
    return content


def _is_old(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(OLD_START)) == OLD_START
