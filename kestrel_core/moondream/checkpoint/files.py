"""Checkpoint containers: which tensors a folder or file holds, and the tensors themselves, memory-mapped.

`open_checkpoint` reads headers only. `Checkpoint.tensors` lists the tensors file by file, in the order they
are stored in. Reading them in that order maps one file at a time. No code in a checkpoint is ever run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from safetensors import SafetensorError, safe_open
from torch import Tensor

from kestrel_core.moondream.checkpoint.containers import (
    START_BYTES,
    BadFile,
    parse_json,
    refuse_placeholder,
    torch_tensors,
)
from kestrel_core.protocol.errors import BadCheckpoint

INDEX = "model.safetensors.index.json"
TORCH_SUFFIXES = (".pt", ".pth", ".bin")

SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "U8": "uint8",
}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    shape: tuple[int, ...]
    dtype: str  # as torch names it


class TensorFile(Protocol):
    """One mapped file. It is unmapped when it and the tensors read from it are no longer referenced."""

    def tensors(self) -> dict[str, TensorInfo]: ...

    def read(self, name: str) -> Tensor: ...


class Checkpoint:
    def __init__(self, path: Path, files: Mapping[str, Path], tensors: Mapping[str, TensorInfo]) -> None:
        self.path = path
        self.tensors = tensors
        self._files = files
        self._mapped: tuple[Path, TensorFile] | None = None

    def read(self, name: str) -> Tensor:
        """The tensor as it is stored, in the mapped file: copy it, do not keep it."""
        path = self._files[name]
        if self._mapped is None or self._mapped[0] != path:
            self.close()  # before the next one is mapped
            self._mapped = (path, _open_file(path))
        return self._mapped[1].read(name)

    def close(self) -> None:
        """Unmap the file. Reading again maps it again."""
        self._mapped = None


def open_checkpoint(path: Path) -> Checkpoint:
    """A folder, one safetensors file, the index of a sharded one, or a torch file."""
    place = _in_folder(path) if path.is_dir() else path
    if place.suffix == ".json":
        return _open_sharded(place)
    tensors = _open_file(place).tensors()
    return Checkpoint(place, dict.fromkeys(tensors, place), tensors)


def read_json(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except OSError as error:
        raise BadCheckpoint(f"{path} cannot be read: {error.strerror}") from error
    except BadFile as error:
        raise BadCheckpoint(f"{path} {error}") from error


def _in_folder(folder: Path) -> Path:
    for suffix, named in ((".safetensors", (INDEX, "model.safetensors")), (".pt", ("model.pt",))):
        for name in named:
            if (folder / name).is_file():
                return folder / name
        found = sorted(folder.glob(f"*{suffix}"))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(file.name for file in found)
            raise BadCheckpoint(
                f"{folder} holds {names} and no {INDEX}; name one of the files, or add the index"
            )
    raise BadCheckpoint(
        f"{folder} holds no checkpoint: looked for {INDEX}, model.safetensors, "
        "a single *.safetensors, model.pt and a single *.pt"
    )


def _open_sharded(index: Path) -> Checkpoint:
    document = read_json(index)
    shard_of = document.get("weight_map") if isinstance(document, dict) else None
    if (
        not isinstance(shard_of, dict)
        or not shard_of
        or not all(isinstance(s, str) for s in shard_of.values())
    ):
        raise BadCheckpoint(f'{index} is no checkpoint index: it has no "weight_map" of tensors to files')
    shards = list(dict.fromkeys(shard_of.values()))
    # Names are compared as they are written: in a download cache the files are links to elsewhere.
    if outside := [s for s in shards if PurePosixPath(s).is_absolute() or ".." in PurePosixPath(s).parts]:
        raise BadCheckpoint(f"{index} points outside its folder, to {', '.join(outside)}")
    if missing := [s for s in shards if not (index.parent / s).is_file()]:
        raise BadCheckpoint(f"{index} names files that are not there: {', '.join(missing)}; download them")
    tensors: dict[str, TensorInfo] = {}
    for shard in shards:
        held = _open_file(index.parent / shard).tensors()
        tensors |= {name: info for name, info in held.items() if shard_of.get(name) == shard}
    if absent := [f"{name} ({shard})" for name, shard in shard_of.items() if name not in tensors]:
        raise BadCheckpoint(f"{index} lists tensors that are not in the file it names: {', '.join(absent)}")
    return Checkpoint(index, {name: index.parent / shard_of[name] for name in tensors}, tensors)


def _open_file(path: Path) -> TensorFile:
    try:
        with path.open("rb") as file:
            refuse_placeholder(file.read(START_BYTES))
        if path.suffix == ".safetensors":
            return _Safetensors(path)
        if path.suffix in TORCH_SUFFIXES:
            return _TorchFile(path)
    except OSError as error:
        raise BadCheckpoint(f"{path} cannot be read: {error.strerror}") from error
    except BadFile as error:
        raise BadCheckpoint(f"{path} {error}") from error
    raise BadCheckpoint(
        f"{path} is no checkpoint: it ends in none of .safetensors, {', '.join(TORCH_SUFFIXES)}, .json"
    )


class _Safetensors:
    def __init__(self, path: Path) -> None:
        try:
            self._file: Any = safe_open(path, framework="pt")
        except (SafetensorError, OSError) as error:
            reason = f"is no safetensors file, or only a part of one ({error}); download it again"
            raise BadFile(reason) from error

    def tensors(self) -> dict[str, TensorInfo]:
        slices = {name: self._file.get_slice(name) for name in self._file.offset_keys()}
        return {
            name: TensorInfo(tuple(s.get_shape()), SAFETENSORS_DTYPES.get(s.get_dtype(), s.get_dtype()))
            for name, s in slices.items()
        }

    def read(self, name: str) -> Tensor:
        tensor: Tensor = self._file.get_tensor(name)
        return tensor


class _TorchFile:
    def __init__(self, path: Path) -> None:
        self._content = torch_tensors(path)

    def tensors(self) -> dict[str, TensorInfo]:
        return {
            name: TensorInfo(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
            for name, tensor in self._content.items()
        }

    def read(self, name: str) -> Tensor:
        return self._content[name]
