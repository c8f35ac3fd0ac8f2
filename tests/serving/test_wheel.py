"""The wheel, built, installed into an empty venv and started from an empty folder: it needs no checkout.

Nothing is downloaded: the venv sees the packages of this one through a path file, all but our own.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest
from free_ports import free_ports
from triton_server import port_flags, until

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "kestrel_core", "client", "gateway", "tools")
PACKAGES = ("kestrel_core", "client/kestrel_client", "gateway/kestrel_gateway", "tools/kestrel_tools")

pytestmark = pytest.mark.triton


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: what an earlier build left in the checkout would get into it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in (*SOURCES, "model_repository"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-w", folder / "dist"]
    run([sys.executable, "-m", "pip", "wheel", "-q", *options, folder])
    [built] = (folder / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    venv = tmp_path_factory.mktemp("venv") / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", venv])
    python = venv / "bin/python"
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    # A path file is not read again in the folders that it names, so an editable install there stays unseen.
    ours = {sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith("site-packages"))}
    (site / "others.pth").write_text("\n".join(sorted(ours)) + "\n")
    pip = [sys.executable, "-m", "pip", "-q", "--python", python, "install", "--no-deps", "--no-index"]
    run([*pip, wheel])
    return venv


def run(command: list[object], folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=clean(), capture_output=True, text=True, check=False)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def clean() -> dict[str, str]:
    """The environment without what would lead back to the checkout."""
    return {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "KESTREL"))}


@pytest.fixture
def serving(venv: Path, tmp_path: Path) -> Iterator[str]:
    """`kestrel serve --demo` in an empty folder; gives what it printed."""
    folder, log = tmp_path / "empty", tmp_path / "log"
    folder.mkdir()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [venv / "bin/kestrel", "serve", "--demo", "--drain-s=0", *port_flags(free_ports(4))],
            cwd=folder,
            env=clean(),
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: b"Ctrl-C ends it" in log.read_bytes() or process.poll() is not None, 180)
        assert process.poll() is None, log.read_text()
        yield log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    assert list(folder.iterdir()) == [], "nothing is left where it was started"


def test_everything_comes_along(wheel: Path) -> None:
    packed = set(ZipFile(wheel).namelist())
    expected = {f"{Path(package).name}/py.typed" for package in PACKAGES}
    for package in PACKAGES:
        for path in chain(*((ROOT / package).rglob(f"*.{kind}") for kind in ("py", "cu", "cuh"))):
            expected.add(str(Path(Path(package).name) / path.relative_to(ROOT / package)))
    for path in (ROOT / "model_repository").rglob("*"):
        if path.is_file() and path.suffix in (".py", ".pbtxt"):
            expected.add(str(Path("kestrel_core") / path.relative_to(ROOT)))
    expected |= {f"kestrel_client/samples/{path.name}" for path in (ROOT / "client/samples").iterdir()}
    pages = (ROOT / "gateway/kestrel_gateway").glob("*/static/*")
    expected |= {str(path.relative_to(ROOT / "gateway")) for path in pages}
    bundled = (path for path in (ROOT / "kestrel_core/bundled").rglob("*") if path.is_file())
    expected |= {str(path.relative_to(ROOT)) for path in bundled}
    pictures = (ROOT / "tools/kestrel_tools/doctor/pictures").iterdir()
    expected |= {f"kestrel_tools/doctor/pictures/{path.name}" for path in pictures}
    assert {name for name in packed if ".dist-info/" not in name} == expected


def test_it_is_the_wheel_that_is_tried(wheel: Path, venv: Path, tmp_path: Path) -> None:
    names = ("kestrel_core", "kestrel_client", "kestrel_gateway", "kestrel_tools")
    code = f"import {', '.join(names)}; print({', '.join(f'{name}.__file__' for name in names)}, sep='\\n')"
    places = run([venv / "bin/python", "-c", code], tmp_path).split()
    assert len(places) == 4 and all(Path(place).is_relative_to(venv) for place in places)
    version = wheel.name.split("-")[1]
    assert run([venv / "bin/kestrel", "--version"], tmp_path) == f"kestrel {version}\n"
    assert "bench" in run([venv / "bin/kestrel", "--help"], tmp_path)


def test_an_installed_wheel_serves_from_an_empty_folder(serving: str, tmp_path: Path) -> None:
    assert "CudaDriverHelper" not in serving
    [plain, french] = [line for line in serving.splitlines() if "curl" in line]
    assert json.loads(run(["sh", "-c", plain], tmp_path))["answer"] == "5"
    assert json.loads(run(["sh", "-c", french], tmp_path))["answer"] == "blanc"
    [client] = [line.strip() for line in serving.splitlines() if "kestrel-client" in line]
    assert "5" in run(["sh", "-c", client], tmp_path)
