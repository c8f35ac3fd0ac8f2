"""Triton's server as a program on this machine: where it is, and whether it can run our model.

It comes from PATH, from the official container, or from the wheel `nvidia-pytriton`, whose Python package is
never imported: only the binaries in it are used, where they lie.
"""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kestrel_core.protocol.errors import KestrelError

OFFICIAL = Path("/opt/tritonserver")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
STUB = "triton_python_backend_stub"
BACKEND = ("libtriton_python.so", "triton_python_backend_utils.py")


@dataclass(frozen=True, slots=True)
class Installation:
    """`backends` is the folder for --backend-directory, or None where the server knows its own."""

    server: Path
    stub: Path
    environment: Mapping[str, str]
    backends: Path | None = None


def find_triton(workspace: Path, environment: Mapping[str, str]) -> Installation:
    """The server to start. `workspace` is a folder of ours that lives as long as the server."""
    environment = _with_our_python(environment)
    on_path = shutil.which("tritonserver", path=environment["PATH"])
    for server in (Path(on_path).resolve() if on_path else None, OFFICIAL / "bin/tritonserver"):
        if server is not None and server.is_file():
            beside = server.parents[1] / "backends/python" / STUB
            return Installation(
                server, beside if beside.is_file() else OFFICIAL / "backends/python" / STUB, environment
            )
    wheel = importlib.util.find_spec("pytriton")
    if wheel is None or not wheel.submodule_search_locations:
        raise KestrelError(
            "there is no Triton server here, neither tritonserver on PATH nor the official container's nor "
            "the wheel's; pip install 'kestrel-triton[triton]', or run in NVIDIA's container"
        )
    return _in_wheel(Path(wheel.submodule_search_locations[0]) / "tritonserver", workspace, environment)


def _in_wheel(root: Path, workspace: Path, environment: Mapping[str, str]) -> Installation:
    stubs = root / "python_backend_stubs"
    stub = stubs / PYTHON / STUB
    if not stub.is_file():
        has = ", ".join(sorted(path.name for path in stubs.iterdir()))
        raise KestrelError(f"nvidia-pytriton has no stub for Python {PYTHON}; it has them for {has}")
    if int(importlib.metadata.version("numpy").partition(".")[0]) > 1:
        raise KestrelError("NumPy 2 kills the Python stub of nvidia-pytriton's server; pip install 'numpy<2'")
    python = workspace / "backends/python"
    python.mkdir(parents=True)
    for target in (stub, *(root / "backends/python" / name for name in BACKEND)):
        (python / target.name).symlink_to(target)
    libraries = [sysconfig.get_config_var("LIBDIR"), *filter(None, [environment.get("LD_LIBRARY_PATH")])]
    found = {**environment, "LD_LIBRARY_PATH": ":".join(libraries)}
    return Installation(root / "bin/tritonserver", stub, found, python.parent)


def _with_our_python(environment: Mapping[str, str]) -> dict[str, str]:
    """The stub takes the packages of the first python3 on PATH, so that has to be ours."""
    path = f"{sys.prefix}/bin:{environment.get('PATH', os.defpath)}"
    ours = str(Path(__file__).parents[2])  # so that a checkout need not be installed
    packages = ":".join([ours, *filter(None, [environment.get("PYTHONPATH")])])
    found = {**environment, "PATH": path, "PYTHONPATH": packages}
    found.pop("AIP_MODE", None)  # with it Triton listens for Vertex AI as well, on every network
    return found


def check_stub(triton: Installation) -> None:
    """Whether the process that runs our model can start. Triton would wait for it in silence."""
    try:
        linked = re.search(rb"libpython(3\.\d+)", triton.stub.read_bytes())
        if linked and linked[1].decode() != PYTHON:
            raise KestrelError(
                f"Triton's Python stub is built for {linked[1].decode()} and this is Python {PYTHON}; "
                f"run kestrel under {linked[1].decode()}"
            )
        tried = subprocess.run([triton.stub], env=triton.environment, capture_output=True, check=False)
    except OSError as error:
        raise KestrelError(f"Triton's Python stub {triton.stub} cannot be run: {error.strerror}") from error
    if tried.returncode != 1:  # what a call without arguments gives
        said = tried.stderr.decode(errors="replace").strip() or f"exit code {tried.returncode}"
        raise KestrelError(
            f"Triton's Python stub does not start ({said}); it needs the shared library of Python {PYTHON}, "
            "which some builds leave out: take one built with --enable-shared"
        )
