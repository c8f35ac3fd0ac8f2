"""Triton's server as a program on this machine: where it is, whether it can run our model, its processes.

It comes from PATH, from the official container, or from the wheel `nvidia-pytriton`, whose Python package is
never imported: only the binaries in it are used, where they lie.
"""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from kestrel_core.protocol.errors import KestrelError

OFFICIAL = Path("/opt/tritonserver")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
STUB = "triton_python_backend_stub"
BACKEND = ("libtriton_python.so", "triton_python_backend_utils.py")
REGION = re.compile(r"/dev/shm/triton_python_backend_shm_region_[\w-]+")
OPEN_REQUESTS = re.compile(r"^kestrel_open_requests\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Installation:
    """`backends` is the folder for --backend-directory, or None where the server knows its own."""

    server: Path
    stub: Path
    environment: Mapping[str, str]
    backends: Path | None = None


def find_triton(workspace: Path, environment: Mapping[str, str]) -> Installation:
    """The server to start. `workspace` is a folder of ours that lives as long as it."""
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
            "the wheel's; pip install --no-deps nvidia-pytriton"
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
    """The stub takes the packages of the first python3 on PATH: let that be ours."""
    path = f"{sys.prefix}/bin:{environment.get('PATH', os.defpath)}"
    ours = str(Path(__file__).parents[2])  # so that a checkout need not be installed
    packages = ":".join([ours, *filter(None, [environment.get("PYTHONPATH")])])
    return {**environment, "PATH": path, "PYTHONPATH": packages}


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


class Server:
    """A tritonserver that we started, and its stubs: a process group of their own."""

    def __init__(self, triton: Installation, flags: Sequence[str], http_port: int, metrics_port: int) -> None:
        backends = [f"--backend-directory={triton.backends}"] if triton.backends else []
        self._url = f"http://127.0.0.1:{http_port}/v2/models/moondream/ready"
        self._metrics_url = f"http://127.0.0.1:{metrics_port}/metrics"
        self._process = subprocess.Popen(
            [triton.server, *backends, *flags],
            env=triton.environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # the terminal's Ctrl-C is for us; we pass it on
        )
        self._stubs: set[int] = set()
        self._regions: set[str] = set()

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def is_ready(self) -> bool:
        # Now, since of a server that died neither can be learned.
        self._stubs.update(_stubs_of(self._process.pid))
        self._regions |= self._shared_memory()
        return _fetch(self._url) is not None

    def has_lost_a_stub(self) -> bool:
        """Triton does not notice: its health stays green, and open streams hang."""
        return not all(_runs(pid) for pid in self._stubs)

    def num_open(self) -> int | None:
        """Requests that have not had their last response; None where the metrics cannot be read."""
        text = _fetch(self._metrics_url)
        found = OPEN_REQUESTS.findall(text) if text is not None else []
        return sum(int(float(number)) for number in found) if found else None

    def ask_to_end(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End what is left of it, here and now, and free the shared memory that it would leave behind."""
        regions = self._regions | self._shared_memory()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for region in regions:
            Path(region).unlink(missing_ok=True)

    def _shared_memory(self) -> set[str]:
        try:
            return set(REGION.findall(Path(f"/proc/{self._process.pid}/maps").read_text()))
        except OSError:
            return set()


def _fetch(url: str) -> str | None:
    try:
        with urlopen(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:  # refused, too late, or an HTTP error
        return None


def _stubs_of(server: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        status = _status(int(folder.name))
        if status and status[0].startswith(STUB[:15]) and int(status[2]) == server:
            yield int(folder.name)


def _runs(pid: int) -> bool:
    status = _status(pid)
    return status is not None and status[0].startswith(STUB[:15]) and status[1] not in "ZX"


def _status(pid: int) -> tuple[str, str, str] | None:
    """Name (of which the kernel keeps 15 letters), state and parent."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name, _, rest = line.partition("(")[2].rpartition(")")
    state, parent = rest.split()[:2]
    return name, state, parent
