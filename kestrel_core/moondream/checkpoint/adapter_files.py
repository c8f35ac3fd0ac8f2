"""Reads an adapter from a file or a folder: Moondream's `.pt` and `.safetensors`, and PEFT's folders.

A file is read whole, and its size is checked before: it may be replaced or cut short at any moment, and a
mapped file that shrinks would end the process. Errors name the file, never its folder.
"""

import os
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from kestrel_core.intake.local_adapters import NAMED, PEFT_CONFIG, PEFT_TENSORS, SUFFIXES
from kestrel_core.moondream.checkpoint.adapter_formats import moondream_matrices
from kestrel_core.moondream.checkpoint.adapter_tensors import assemble
from kestrel_core.moondream.checkpoint.containers import (
    START_BYTES,
    BadFile,
    parse_json,
    refuse_placeholder,
    torch_tensors,
)
from kestrel_core.moondream.checkpoint.peft_adapter import PeftConfig
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapter, Stacks
from kestrel_core.protocol.errors import BadAdapter
from kestrel_core.protocol.names import shown

IN_DICT = "lora_state_dict"  # Moondream 3's tensors may be a dict in the dict of a .pt file

MAX_JSON_BYTES = 1 << 20
MAX_HEADER_BYTES = 8 << 20  # names, shapes and types: a real adapter's are 50 kB
MAX_ENTRIES = 10_000  # of an archive


def read_adapter(path: Path, config: TextConfig, dtype: torch.dtype, max_rank: int) -> Adapter:
    """The adapter in a file or a folder, checked against the model, its numbers in `dtype`."""
    max_bytes = max_file_bytes(config, max_rank)
    if path.is_dir() and (path / PEFT_CONFIG).exists():
        peft = PeftConfig.parse(_read_json(path / PEFT_CONFIG))
        matrices = peft.matrices(_read_tensors(_peft_tensors(path), max_bytes), config)
        return assemble(matrices, config, dtype, max_rank)
    file = _in_folder(path) if path.is_dir() else path
    return assemble(moondream_matrices(_read_tensors(file, max_bytes), config), config, dtype, max_rank)


def max_file_bytes(config: TextConfig, max_rank: int) -> int:
    """No adapter that is taken is larger, all its numbers being float64."""
    return 8 * Stacks.numbers_each(config, max_rank) + MAX_HEADER_BYTES


def _peft_tensors(folder: Path) -> Path:
    if (folder / PEFT_TENSORS).exists():
        return folder / PEFT_TENSORS
    if (folder / "adapter_model.bin").exists():
        raise BadAdapter(
            "adapter_model.bin is a pickle and may hold code; save the adapter as adapter_model.safetensors"
        )
    raise BadAdapter(f"there is {PEFT_CONFIG} but no {PEFT_TENSORS} beside it")


def _in_folder(folder: Path) -> Path:
    for name in NAMED:
        if (folder / name).is_file():
            return folder / name
    found = sorted(
        file for file in folder.iterdir() if file.suffix in SUFFIXES and not file.name.startswith(".")
    )
    if [file.name for file in found] == [PEFT_TENSORS]:
        raise BadAdapter(f"there is {PEFT_TENSORS} but no {PEFT_CONFIG} beside it")
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(shown(file.name) for file in found[:4])
        raise BadAdapter(f"the folder holds several files ({names}); call the right one {NAMED[0]}")
    raise BadAdapter(
        f"the folder holds no adapter: looked for {PEFT_CONFIG}, {', '.join(NAMED)}, "
        "a single *.safetensors and a single *.pt"
    )


def _read_json(path: Path) -> object:
    name = shown(path.name)
    try:
        return parse_json(_read_bytes(path, MAX_JSON_BYTES))
    except BadFile as error:
        raise BadAdapter(f"{name} {error}") from error


def _read_tensors(path: Path, max_bytes: int) -> Mapping[str, Tensor]:
    try:
        if path.suffix not in SUFFIXES:
            raise BadFile(f"is no adapter: it ends in none of {', '.join(SUFFIXES)}")
        content = _read_bytes(path, max_bytes)
        refuse_placeholder(content[:START_BYTES])
        if path.suffix == ".pt":
            _check_archive(content)
            return torch_tensors(BytesIO(content), IN_DICT)
        return _safetensors(content)
    except BadFile as error:
        raise BadAdapter(f"{shown(path.name)} {error}") from error


def _read_bytes(path: Path, max_bytes: int) -> bytes:
    try:
        if not path.is_file():
            raise BadFile("is no file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise BadFile(f"has {size:,} bytes, and no adapter that is taken has over {max_bytes:,}")
            return file.read(max_bytes)
    except OSError as error:
        raise BadFile(f"cannot be read: {error.strerror}") from error


def _check_archive(content: bytes) -> None:
    """Torch stores its archives uncompressed; a compressed one could be far larger than its file."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
        raise BadFile(f"is no torch file, or only a part of one ({error})") from error
    if (
        any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
        or len(entries) > MAX_ENTRIES
        or sum(entry.file_size for entry in entries) > len(content)
    ):
        raise BadFile("is a compressed or overlapping archive; save it with torch.save")


def _safetensors(content: bytes) -> Mapping[str, Tensor]:
    header_bytes = int.from_bytes(content[:8], "little")
    if header_bytes > MAX_HEADER_BYTES:
        raise BadFile("is no safetensors file, or only a part of one (its header is too long)")
    try:
        tensors: Mapping[str, Tensor] = load(content)
    except (SafetensorError, KeyError, ValueError, OverflowError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise BadFile(f"is no safetensors file, or only a part of one ({reason})") from error
    if not tensors:
        raise BadFile("holds no tensors")
    return tensors
