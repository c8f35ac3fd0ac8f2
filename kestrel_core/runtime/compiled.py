"""Where compiled kernels are kept, so that only the first start of a version compiles them.

The libraries that compile read their folders from the environment: FlashInfer when it is imported, the kernel
language when it compiles. Both are safe for several starts at once (a lock, and files that are moved into
place) and keep the kernels of different GPUs apart. Versions are kept apart here.
"""

import logging
import os
import tempfile
from collections.abc import MutableMapping
from importlib import metadata
from pathlib import Path

from kestrel_core.moondream.ops.cubins import FOLDER_VARIABLE

log = logging.getLogger("kestrel")

FOLDERS = {  # by the variable that says where
    "TRITON_CACHE_DIR": "kernels",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    FOLDER_VARIABLE: "cubins",
}
COMPILERS = ("torch", "triton", "flashinfer-python")


def use_cache_folder(folder: str | None, environment: MutableMapping[str, str] | None = None) -> Path | None:
    """Have the libraries keep what they compile in `folder`. Returns where, or None where they choose.

    A variable that is set already stays as it is. A folder that cannot be written to is left alone, with a
    warning, since the libraries would fail in it.
    """
    environment = os.environ if environment is None else environment
    if folder is None:
        return None
    place = Path(folder).expanduser().absolute() / versions()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        log.warning("compiled kernels are kept where the libraries keep them, not in %s: %s", folder, error)
        return None
    for variable, inner in FOLDERS.items():
        environment.setdefault(variable, str(place / inner))
    return place


def versions() -> str:
    """Of all that compiles, as the name of a folder."""
    found = []
    for name in COMPILERS:
        try:
            found.append(f"{name}-{metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return "_".join(found) or "unknown"
