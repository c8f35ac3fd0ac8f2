"""Downloads: the files of a published model, from Hugging Face or from its cache on this machine. No torch.

Where the cache lies, which token is used and whether the network may be used are Hugging Face's own settings
(`HF_HOME`, `HF_TOKEN`, `HF_HUB_OFFLINE`).
"""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from huggingface_hub.utils.tqdm import tqdm

from kestrel_core.intake.models import INDEX, TOKENIZER, HubRepository, find_model, unpinned
from kestrel_core.protocol.errors import BadCheckpoint

BYTES_BAR = "huggingface_hub.snapshot_download"

log = logging.getLogger("kestrel")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    folder: Path
    tokenizer: Path


def fetch_model(
    name: str, progress: Callable[[int, int], None] | None = None, revision: str | None = None
) -> ModelFiles:
    """A model's files, all of one commit, from network or cache. `progress` gets bytes done and in all.

    `revision` is a commit, tag or branch, in place of the one recorded in `intake.models`.
    """
    model = find_model(name)
    if model.repository is None:
        raise BadCheckpoint(f"{name} is not downloaded: it comes along with this package")
    weights = model.repository.at(revision)
    tokenizer = _fetch(TOKENIZER, name, weights, None) / TOKENIZER.files[0]
    files = ModelFiles(_fetch(weights, name, weights, progress), tokenizer)
    # The cache names a folder after the commit that it holds.
    for warning in (
        unpinned(weights, files.folder.name, f"--revision {files.folder.name}"),
        unpinned(TOKENIZER, tokenizer.parent.name, f"--tokenizer-path {tokenizer}"),
    ):
        if warning is not None:
            log.warning("%s: %s", name, warning)
    return files


def _fetch(
    repository: HubRepository, model: str, weights: HubRepository, progress: Callable[[int, int], None] | None
) -> Path:
    bar = None if progress is None else reporting(progress)
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
        except Exception as error:  # any of several libraries may raise, down to the sockets
            if not cached_only:
                reason = reason_of(error)
            continue
        # Without a listing of the repository from its server, the library returns whatever the cache has.
        if _is_complete(folder, repository):
            return folder
    raise BadCheckpoint(
        f"{model} needs {repository.name} from Hugging Face, and {reason}. "
        f"Download {', '.join(weights.files)} of {weights.name} (revision {weights.revision}) "
        f"and tokenizer.json of {TOKENIZER.name} into one folder and set KESTREL_MODEL_PATH to it"
    )


def reason_of(error: Exception) -> str:
    # Where the cache cannot help either, the library raises an error about that, caused by the first one.
    cause = (isinstance(error, LocalEntryNotFoundError) and error.__cause__) or error
    if isinstance(cause, HfHubHTTPError) and cause.response.status_code in (401, 403):
        return (
            "access was refused: accept its terms on its page, and set HF_TOKEN to a token that may read it"
        )
    return f"it could not be downloaded ({str(cause).strip().partition(chr(10))[0] or type(cause).__name__})"


def _is_complete(folder: Path, repository: HubRepository) -> bool:
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


def reporting(progress: Callable[[int, int], None]) -> type[Any]:
    """A silent progress bar that hands on the count of bytes.

    The total is of the files that have begun; the library begins several at once, each in a thread.
    """
    turn = threading.Lock()  # to count and to hand on, so that counts come in their order

    class Reporting(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            self._counts_bytes = options.get("name") == BYTES_BAR
            self._done = 0
            super().__init__(*args, **{**options, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            with turn:
                self._done += int(n or 0)
                if self._counts_bytes:
                    progress(self._done, int(self.total or 0))

    return Reporting
