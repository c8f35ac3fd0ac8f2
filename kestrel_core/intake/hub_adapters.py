"""Adapters on Hugging Face, named `org/name` or `org/name@revision`. No torch.

The revision is resolved once, to a commit; from then on it is that commit until the process ends. Only files
that an adapter is read from are downloaded, and only after their sizes are known to be within the limit.
Without the network the cache is used, if it has them.
"""

import logging
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from kestrel_core.intake.hub import reason_of, reporting
from kestrel_core.intake.local_adapters import NAMED, PEFT_CONFIG, PEFT_TENSORS, SUFFIXES, holds_adapter
from kestrel_core.protocol.errors import AdapterUnreachable, BadAdapter, KestrelError, UnknownAdapter
from kestrel_core.protocol.names import shown

PART = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
NAME = re.compile(rf"(?P<repository>{PART}/{PART})(?:@(?P<revision>[A-Za-z0-9][A-Za-z0-9_./-]{{0,99}}))?")

LISTING_S = 15.0  # to be told what a repository holds

log = logging.getLogger("kestrel")


class HubAdapters:
    def __init__(self, max_bytes: int, download_s: float) -> None:
        self._max_bytes = max_bytes
        self._download_s = download_s

    def knows(self, name: str) -> bool:
        return ".." not in name and NAME.fullmatch(name) is not None

    def fetch(self, name: str) -> Path:
        """The folder of the adapter in Hugging Face's cache."""
        match = NAME.fullmatch(name)
        assert match is not None
        repository, revision = match["repository"], match["revision"] or "main"
        try:
            return _in_time(lambda: self._download(name, repository, revision), self._download_s)
        except KestrelError:
            raise
        except GatedRepoError as error:
            raise UnknownAdapter(
                f'adapter "{shown(name)}" is not open to this server: accept its terms on Hugging Face, '
                "and set HF_TOKEN to a token that may read it"
            ) from error
        except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
            raise UnknownAdapter(
                f'there is no adapter "{shown(name)}" on Hugging Face that this server may read'
            ) from error
        except Exception as error:  # any of several libraries may raise, down to the sockets
            cached = _cached(repository, revision)
            if cached is None:
                raise AdapterUnreachable(
                    f'adapter "{shown(name)}" is not on this machine yet, and {reason_of(error)}; try '
                    "again later"
                ) from error
            log.info("adapter %s: from the cache, since %s", name, reason_of(error))
            return cached

    def _download(self, name: str, repository: str, revision: str) -> Path:
        api = HfApi()
        commit = api.resolve_revision(repository, revision=revision).resolved
        info = api.model_info(repository, revision=commit, files_metadata=True, timeout=LISTING_S)
        sizes = {file.rfilename: file.size for file in info.siblings or ()}
        wanted = _wanted(name, {file: size for file, size in sizes.items() if size is not None})
        size = sum(wanted.values())
        if size > self._max_bytes:
            raise BadAdapter(
                f'adapter "{shown(name)}" has {size:,} bytes, and no more than {self._max_bytes:,} are '
                "downloaded"
            )
        log.info("adapter %s: fetching %d bytes of commit %s from Hugging Face", name, size, commit)
        bar = reporting(_told(name, size))
        folder = snapshot_download(repository, revision=commit, allow_patterns=list(wanted), tqdm_class=bar)
        return Path(folder)


def _wanted(name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Of the files of a repository those that the adapter will be read from, with their sizes."""
    if PEFT_CONFIG in sizes and PEFT_TENSORS in sizes:
        return {file: sizes[file] for file in (PEFT_CONFIG, PEFT_TENSORS)}
    for file in NAMED:
        if file in sizes:
            return {file: sizes[file]}
    tensors = [file for file in sizes if file.endswith(SUFFIXES) and "/" not in file]
    if len(tensors) == 1 and PEFT_CONFIG not in sizes:
        return {tensors[0]: sizes[tensors[0]]}
    raise BadAdapter(
        f'"{shown(name)}" holds no adapter: looked for {PEFT_CONFIG} with {PEFT_TENSORS}, '
        f"{', '.join(NAMED)}, and a single file ending in {' or '.join(SUFFIXES)}"
    )


def _cached(repository: str, revision: str) -> Path | None:
    try:
        # The library refuses a folder that lacks a file asked for, and not all of the repository's are there.
        found = snapshot_download(
            repository, revision=revision, allow_patterns=[PEFT_CONFIG, PEFT_TENSORS], local_files_only=True
        )
    except Exception:  # whatever it is, the cache does not help
        return None
    folder = Path(found)
    # Where only one half of PEFT's two files has come, the other still has to be fetched.
    halves = {(folder / name).exists() for name in (PEFT_CONFIG, PEFT_TENSORS)}
    return folder if len(halves) == 1 and holds_adapter(folder) else None


def _told(name: str, size: int) -> Callable[[int, int], None]:
    """Tells the log of every further quarter of all files."""
    quarter = 0

    def told(done: int, begun: int) -> None:
        nonlocal quarter
        if size and 4 * done // size > quarter:
            quarter = 4 * done // size
            log.info("adapter %s: %d of %d bytes", name, done, size)

    return told


def _in_time(download: Callable[[], Path], limit_s: float) -> Path:
    """Wait no longer than the limit. The library has none; what it then still does ends with its sockets."""
    done: Future[Path] = Future()

    def run() -> None:
        try:
            done.set_result(download())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name="adapter download").start()
    try:
        return done.result(limit_s)
    except TimeoutError as error:
        if done.done():
            raise
        raise TimeoutError(f"it took more than {limit_s:g} s") from error
