"""A model's files on disk: which there are, whether they are whole, and whether they are the published ones.

Reads bytes and JSON only, so that what is wrong with a file is said before any library trips over it.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock
from typing import Any

from kestrel_core.moondream.checkpoint.files import INDEX, read_json
from kestrel_tools.doctor.report import Finding, fault, first_names, ok, skipped

READ_BYTES = 2**22
HASHERS = 4  # threads; hashing leaves the GIL, and a disk is rarely faster than four of them
AGAIN = "Download the file again."

# Of the files in kestrel_core/bundled; a newly trained model brings new ones.
BUNDLED_SHA256 = {
    "config.json": "ddcbb533302d214d144333fd2e061c325740552a30cb7c2a7e13fa5cff92014f",
    "model.safetensors": "89d995361642abea9cf6ae779f5b9e2f82e9ec9626c3fb0a89c5f9c27f0ed315",
    "tokenizer.json": "95926ca76c8bd4825e32ccd5e4556e71bc652724840f0cac580ee8d9573444d1",
}

# Bits of one number, by its name in a header.
BITS = {"C64": 64, "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8}
BITS |= {"I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8}


def model_files(path: Path, tokenizer: Path) -> list[Path]:
    """Configuration, tokenizer, and all that the weights are made of, in the order the engine looks."""
    folder = path if path.is_dir() else path.parent
    return [file for file in (folder / "config.json", tokenizer) if file.is_file()] + _weights(path)


def _weights(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path, *_shards(path)] if path.suffix == ".json" else [path]
    if (path / INDEX).is_file():
        return [path / INDEX, *_shards(path / INDEX)]
    for pattern in ("model.safetensors", "*.safetensors", "model.pt", "*.pt"):
        if found := sorted(path.glob(pattern)):
            return found
    return []


def _shards(index: Path) -> list[Path]:
    """Those that are there; `check_index` names the others."""
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [index.parent / name for name in names if (index.parent / name).is_file()]


def check_index(path: Path) -> Finding:
    index = path / INDEX if path.is_dir() else path
    if index.suffix != ".json" or not index.is_file():
        return skipped("the weights are one file, which needs no index")
    weight_map: dict[str, str] = read_json(index)["weight_map"]
    shards = sorted(set(weight_map.values()))
    if absent := [name for name in shards if not (index.parent / name).is_file()]:
        return fault(f"{index.name} names files that are not there: {first_names(absent)}", "Download them.")
    held = {shard: _header_of(index.parent / shard).keys() for shard in shards}
    if lost := [name for name, shard in weight_map.items() if name not in held[shard]]:
        return fault(f"listed in {index.name}, not in their files: {first_names(lost)}", AGAIN)
    return ok(f"{len(weight_map):,} tensors in {len(shards)} files, each where {index.name} says")


def check_headers(files: list[Path]) -> Finding:
    """Every safetensors file: a sound header, and as many bytes behind it as it says."""
    safetensors = [file for file in files if file.suffix == ".safetensors"]
    if not safetensors:
        return skipped("there is no safetensors file")
    tensors, troubles = 0, []
    for file in safetensors:
        try:
            tensors += check_header(file)
        except (ValueError, OSError) as error:
            troubles.append(f"{file.name}: {error}")
    if troubles:
        return fault("; ".join(troubles), AGAIN)
    size = sum(file.stat().st_size for file in safetensors)
    return ok(
        f"{len(safetensors)} safetensors files hold {tensors:,} tensors in {size:,} bytes, without gaps"
    )


def check_header(file: Path) -> int:
    """How many tensors. Raises ValueError with what is wrong: offsets, overlaps, gaps, sizes, or length."""
    header, start = _header_of(file), 0
    with file.open("rb") as opened:
        data_bytes = file.stat().st_size - 8 - int.from_bytes(opened.read(8), "little")
    spans = sorted((*info["data_offsets"], name) for name, info in header.items())
    for begin, end, name in spans:
        info = header[name]
        if info["dtype"] not in BITS:
            raise ValueError(f"{name} is of an unknown type {info['dtype']}")
        if end - begin != math.prod(info["shape"]) * BITS[info["dtype"]] // 8:
            raise ValueError(
                f"{name} takes {end - begin:,} bytes, which is not {info['shape']} {info['dtype']}"
            )
        if begin != start:
            raise ValueError(
                f"{name} {'overlaps the one before' if begin < start else 'leaves a gap before it'}"
            )
        start = end
    if start != data_bytes:
        raise ValueError(f"it holds {data_bytes:,} bytes of tensors, and its header says {start:,}")
    return len(spans)


def _header_of(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if not 2 <= length <= file.stat().st_size - 8:
            raise ValueError(
                f"its header would be {length:,} bytes long, and the file is {file.stat().st_size:,}"
            )
        try:
            header = json.loads(opened.read(length))
        except ValueError as error:
            raise ValueError(f"its header is no JSON ({error})") from None
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    header.pop("__metadata__", None)
    for name, info in header.items():
        if not (isinstance(info, dict) and {"dtype", "shape", "data_offsets"} <= info.keys()):
            raise ValueError(f"its header says no type, shape or place of {name}")
    return header


def digests(files: list[Path], progress: Callable[[int, int], None]) -> Iterator[tuple[Path, str]]:
    """sha256 of each file, computed in threads, given in the files' order. `progress`: bytes done, in all."""
    total, done, lock = sum(file.stat().st_size for file in files), 0, Lock()

    def count(size: int) -> None:
        nonlocal done
        with lock:
            done += size
            progress(done, total)

    with ThreadPoolExecutor(HASHERS) as threads:
        futures = [threads.submit(_digest, file, count) for file in files]
        for _ in as_completed(futures):
            pass
    yield from ((file, future.result()) for file, future in zip(files, futures, strict=True))


def _digest(file: Path, count: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(READ_BYTES):
            digest.update(block)
            count(len(block))
    return digest.hexdigest()


def judge_digest(file: Path, sha256: str, is_bundled: bool) -> Finding:
    """Against what is known of this file: the bundled model's, or what Hugging Face's server said of it."""
    if is_bundled:
        expected = BUNDLED_SHA256.get(file.name)
        return _compared(sha256, sha256, expected, "the bundled one", "Reinstall kestrel-triton.")
    tag = hub_tag(file)
    own = sha256 if tag is None or len(tag) == 64 else _git_digest(file)
    return _compared(sha256, own, tag, "as published", AGAIN)


def _compared(sha256: str, own: str, expected: str | None, source: str, advice: str) -> Finding:
    if expected is None:
        return ok(f"{sha256} (nothing here to compare it with)")
    if own != expected:
        return fault(f"{own} is not {expected}: the file was changed or damaged", advice)
    return ok(f"{sha256}, {source}")


def hub_tag(file: Path) -> str | None:
    """What the hub's server calls this content: sha256 of large files, git's sha1 of small ones.

    Its cache names blobs so; a download into a folder leaves a note beside the files.
    """
    blob = file.resolve()
    if blob.parent.name == "blobs" and _is_tag(blob.name):
        return blob.name
    note = file.parent / ".cache/huggingface/download" / f"{file.name}.metadata"
    lines = note.read_text().split() if note.is_file() else []
    return lines[1] if len(lines) > 1 and _is_tag(lines[1]) else None


def _is_tag(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", text) is not None


def _git_digest(file: Path) -> str:
    content = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
