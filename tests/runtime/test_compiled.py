"""The folder for compiled kernels: what the libraries are told, and when they are left alone."""

from pathlib import Path

import pytest

from kestrel_core.runtime.compiled import use_cache_folder, versions


def test_both_libraries_keep_what_they_compile_in_a_folder_of_these_versions(tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    place = use_cache_folder(str(tmp_path / "kept"), environment)
    assert place == tmp_path / "kept" / versions() and place.is_dir()
    assert environment == {
        "TRITON_CACHE_DIR": str(place / "kernels"),
        "FLASHINFER_WORKSPACE_BASE": str(place / "flashinfer"),
        "CUBIN_CACHE_DIR": str(place / "cubins"),
    }
    assert "torch-" in versions() and "/" not in versions()


def test_without_a_folder_nothing_is_set() -> None:
    environment: dict[str, str] = {}
    assert use_cache_folder(None, environment) is None and not environment


def test_what_the_user_has_set_stays(tmp_path: Path) -> None:
    environment = {"TRITON_CACHE_DIR": "/mine"}
    place = use_cache_folder(str(tmp_path), environment)
    assert place is not None and environment["TRITON_CACHE_DIR"] == "/mine"
    assert environment["FLASHINFER_WORKSPACE_BASE"] == str(place / "flashinfer")


def test_a_folder_that_cannot_be_used_is_warned_of_and_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    environment: dict[str, str] = {}
    assert use_cache_folder(str(tmp_path / "file"), environment) is None and not environment
    assert "compiled kernels are kept where the libraries keep them" in caplog.text


def test_a_folder_for_two_starts_at_once_is_the_same(tmp_path: Path) -> None:
    assert use_cache_folder(str(tmp_path), {}) == use_cache_folder(str(tmp_path), {})
