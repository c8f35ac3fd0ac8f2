import tomllib
from pathlib import Path

import pytest

from kestrel_core.moondream.ops import cubins
from kestrel_core.moondream.ops.cubins import CannotBuild, Driver, build, cache_folder, find_compiler

COMPILER = """#!/bin/sh
if [ "$1" = --version ]; then echo "release 13.0, V13.0.88"; exit; fi
echo called >> {log}
while [ "$1" != -o ]; do shift; done
cp "$3" "$2"
"""


@pytest.fixture
def nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that copies, and counts its calls beside itself."""
    path = tmp_path / "bin" / "nvcc"
    path.parent.mkdir()
    path.write_text(COMPILER.format(log=tmp_path / "log"))
    path.chmod(0o755)
    monkeypatch.setattr(cubins, "find_compiler", lambda: path)
    return path


def test_a_source_is_compiled_once(tmp_path: Path, nvcc: Path) -> None:
    kept = tmp_path / "kept"
    for source in ("one", "one", "two", "one"):
        assert build(source, "kernel", kept).decode() == source
    assert (tmp_path / "log").read_text().split() == ["called"] * 2
    assert len(list(kept.iterdir())) == 2
    assert all(path.name.endswith("-13.0.88.cubin") for path in kept.iterdir())


def test_what_another_machine_built_serves_without_a_compiler(
    tmp_path: Path, nvcc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    build("one", "kernel", kept)
    monkeypatch.setattr(cubins, "find_compiler", lambda: None)
    assert build("one", "kernel", kept) == b"one"
    with pytest.raises(CannotBuild, match="no nvcc"):
        build("two", "kernel", kept)


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path, nvcc: Path) -> None:
    (tmp_path / "file").touch()
    assert build("one", "kernel", tmp_path / "file" / "folder") == b"one"


def test_what_a_compiler_says_is_told(tmp_path: Path, nvcc: Path) -> None:
    nvcc.write_text("#!/bin/sh\necho 'error: no such word' >&2; exit 2")
    with pytest.raises(CannotBuild, match="no such word"):
        build("one", "kernel", tmp_path)


def test_compilers_are_found_where_cuda_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").touch()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_compiler() == tmp_path / "bin" / "nvcc"


def test_the_folder_is_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBIN_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kestrel" / "kernels"
    monkeypatch.setenv("CUBIN_CACHE_DIR", str(tmp_path / "chosen"))
    assert cache_folder() == tmp_path / "chosen"


def test_a_machine_without_a_driver_cannot_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(cubins.ctypes, "CDLL", missing)
    with pytest.raises(CannotBuild, match="no CUDA driver"):
        Driver()


def test_sources_go_into_the_wheel() -> None:
    root = Path(cubins.__file__).parents[3]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    folder = root / "kestrel_core" / "moondream" / "ops"
    packed = {
        path.name for pattern in patterns["kestrel_core.moondream.ops"] for path in folder.glob(pattern)
    }
    assert packed == {"hopper.cuh", "vision_attention.cu"}
