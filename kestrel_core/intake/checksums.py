"""Whether the files of a checkpoint are what their publisher wrote: SHA-256 of each, held against a record.

The record of `model.safetensors` is looked for in `model.safetensors.sha256` and in `SHA256SUMS` beside it,
both as `sha256sum` writes them; then in the file's own metadata, where `sha256` is that of all bytes behind
the header; then in Hugging Face's cache, which names files by their sum. No torch.
"""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kestrel_core.intake.models import INDEX
from kestrel_core.protocol.errors import BadCheckpoint

SUMS = "SHA256SUMS"
SUM = re.compile(r"[0-9a-f]{64}")
SUFFIXES = (".safetensors", ".pt")
MAX_HEADER_BYTES = 100 * 2**20  # what safetensors itself allows
PIECE_BYTES = 4 * 2**20

Progress = Callable[[int, int], None]


class Record(NamedTuple):
    expected: str
    skipped_bytes: int = 0  # at the file's beginning, which are not part of the sum


def verify_weights(path: Path, progress: Progress | None = None) -> None:
    """Of a folder, a file or an index. `progress` is told the bytes that were read, and all."""
    try:
        records = {file: _record(file) for file in weight_files(path)}
        total, done = sum(file.stat().st_size for file in records), 0
        for file, record in records.items():
            found = hashlib.sha256()
            with file.open("rb", buffering=0) as content:
                done += content.seek(record.skipped_bytes)
                while piece := content.read(PIECE_BYTES):
                    found.update(piece)
                    done += len(piece)
                    if progress is not None:
                        progress(done, total)
            if found.hexdigest() != record.expected:
                raise BadCheckpoint(
                    f"{file.name} is damaged or was changed: its SHA-256 is {found.hexdigest()} and "
                    f"{record.expected} is recorded; fetch it again"
                )
    except OSError as error:
        raise BadCheckpoint(f"the weights in {path} cannot be verified: {error.strerror}") from None


def weight_files(path: Path) -> list[Path]:
    """All that hold tensors."""
    if path.is_dir() and (path / INDEX).is_file():
        path = path / INDEX
    if path.suffix == ".json":
        try:
            names = set(json.loads(path.read_bytes())["weight_map"].values())
        except (ValueError, KeyError, AttributeError, TypeError):
            raise BadCheckpoint(f"{path.name} is no index of a checkpoint") from None
        return sorted(path.parent / str(name) for name in names)
    if not path.is_dir():
        return [path]
    for suffix in SUFFIXES:
        if (path / f"model{suffix}").is_file():
            return [path / f"model{suffix}"]
        if found := sorted(path.glob(f"*{suffix}")):
            return found
    raise BadCheckpoint(f"{path.name} holds no checkpoint, neither *.safetensors nor *.pt")


def _record(file: Path) -> Record:
    beside = _named(file.with_name(f"{file.name}.sha256"), file.name) or _named(
        file.with_name(SUMS), file.name
    )
    if beside is not None:
        return Record(beside)
    if file.suffix == ".safetensors" and (inside := _in_header(file)) is not None:
        return inside
    if SUM.fullmatch(file.resolve().name):
        return Record(file.resolve().name)
    raise BadCheckpoint(
        f"the weights are to be verified and {file.name} has no checksum: neither {file.name}.sha256 nor "
        f"{SUMS} beside it, nor sha256 in its metadata; write one with sha256sum, or leave verify_weights out"
    )


def _named(sums: Path, name: str) -> str | None:
    """From a file with a line for each name. A sum alone is that of the only file."""
    if not sums.is_file():
        return None
    for line in sums.read_text(errors="replace").splitlines():
        found, named = line[:64].lower(), line[64:].strip().removeprefix("*")
        if SUM.fullmatch(found) and Path(named or name).name == name:
            return found
    return None


def _in_header(file: Path) -> Record | None:
    with file.open("rb") as content:
        length = int.from_bytes(content.read(8), "little")
        header = content.read(length) if length <= MAX_HEADER_BYTES else b""
    try:
        found = json.loads(header)["__metadata__"]["sha256"]
    except (ValueError, KeyError, TypeError):
        return None
    return Record(found.lower(), 8 + length) if isinstance(found, str) else None
