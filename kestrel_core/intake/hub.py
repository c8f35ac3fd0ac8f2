"""The published models on Hugging Face: their repositories, and their files in the local cache. No torch.

Where the cache lies, with which token and whether the network may be used is Hugging Face's own to say
(`HF_HOME`, `HF_TOKEN`, `HF_HUB_OFFLINE`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from huggingface_hub.utils.tqdm import tqdm

from kestrel_core.protocol.errors import BadCheckpoint

INDEX = "model.safetensors.index.json"
BYTES_BAR = "huggingface_hub.snapshot_download"


@dataclass(frozen=True, slots=True)
class Repository:
    name: str
    revision: str = "main"
    files: tuple[str, ...] = ("config.json", INDEX, "*.safetensors")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    folder: Path
    tokenizer: Path


MODELS = {
    "moondream2": Repository("vikhyatk/moondream2", "2025-06-21"),
    "moondream3-preview": Repository("moondream/moondream3-preview"),
    "moondream3.1-9B-A2B": Repository("moondream/moondream3.1-9B-A2B"),
}
# All of them speak this one. The tokenizer.json beside Moondream 2's weights is of an earlier release.
TOKENIZER = Repository("moondream/starmie-v1", files=("tokenizer.json",))


def fetch_model(name: str, progress: Callable[[int, int], None] | None = None) -> ModelFiles:
    """A model's files, all of one commit, from network or cache. `progress` gets bytes done and in all."""
    if name not in MODELS:
        raise BadCheckpoint(f'there is no model "{name}" to download; known are {", ".join(MODELS)}')
    repository = MODELS[name]
    tokenizer = _fetch(TOKENIZER, name, None) / "tokenizer.json"
    return ModelFiles(_fetch(repository, name, progress), tokenizer)


def _fetch(repository: Repository, model: str, progress: Callable[[int, int], None] | None) -> Path:
    bar = None if progress is None else _reporting(progress)
    reason = "the cache holds only a part of it"
    for cached_only in (False, True):
        try:
            folder = Path(
                snapshot_download(
                    repository.name,
                    revision=repository.revision,
                    allow_patterns=list(repository.files),
                    ignore_patterns=["*/*"],
                    tqdm_class=bar,
                    local_files_only=cached_only,
                )
            )
        except Exception as error:  # of several libraries, down to the sockets
            if not cached_only:
                reason = _reason(error)
            continue
        # Without a listing of the repository from its server, the library returns whatever the cache has.
        if _is_complete(folder, repository):
            return folder
    weights = MODELS[model]
    raise BadCheckpoint(
        f"{model} needs {repository.name} from Hugging Face, and {reason}. "
        f"Download {', '.join(weights.files)} of {weights.name} (revision {weights.revision}) "
        f"and tokenizer.json of {TOKENIZER.name} into one folder and set KESTREL_MODEL_PATH to it"
    )


def _reason(error: Exception) -> str:
    # Where the cache cannot help either, the library says that, and what went wrong before is the cause.
    cause = (isinstance(error, LocalEntryNotFoundError) and error.__cause__) or error
    if isinstance(cause, HfHubHTTPError) and cause.response.status_code in (401, 403):
        return (
            "access was refused: accept its terms on its page, and set HF_TOKEN to a token that may read it"
        )
    return f"it could not be downloaded ({str(cause).strip().partition(chr(10))[0] or type(cause).__name__})"


def _is_complete(folder: Path, repository: Repository) -> bool:
    if repository is TOKENIZER:
        return (folder / "tokenizer.json").is_file()
    try:
        index = json.loads((folder / INDEX).read_bytes())
        shards = set(index["weight_map"].values())
    except FileNotFoundError:
        shards = {"model.safetensors"}
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return all((folder / file).is_file() for file in ("config.json", *shards))


def _reporting(progress: Callable[[int, int], None]) -> type[Any]:
    """A silent progress bar that hands on the count of bytes."""

    class Reporting(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            self._counts_bytes = options.get("name") == BYTES_BAR
            self._done = 0
            super().__init__(*args, **{**options, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            self._done += int(n or 0)
            if self._counts_bytes:
                progress(self._done, int(self.total or 0))

    return Reporting
