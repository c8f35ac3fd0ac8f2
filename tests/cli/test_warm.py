"""`kestrel warm`: it starts an engine as the server would, with random weights, and ends."""

from types import SimpleNamespace

import pytest
import torch

from kestrel_core import build
from kestrel_core.cli.main import main
from kestrel_core.config import RuntimeConfig


def test_all_kernels_are_compiled_and_the_folder_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configs, closed = list[RuntimeConfig](), list[bool]()

    def build_engine(config: RuntimeConfig) -> SimpleNamespace:
        configs.append(config)
        return SimpleNamespace(close=lambda: closed.append(True), timeline="3.0 s: weights 3.0")

    monkeypatch.setattr(build, "build_engine", build_engine)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert main(["warm", "--model", "moondream2", "--quick-start", "--cache-folder", "/kept"]) == 0
    assert (configs[0].weights, configs[0].quick_start, configs[0].cache_folder) == ("random", False, "/kept")
    assert closed == [True]
    assert capsys.readouterr().out == "ready after 3.0 s: weights 3.0\nThe kernels are in /kept.\n"


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cpu"])
def test_without_a_gpu_no_other_device_is_advised(
    device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert main(["warm", "--device", device]) == 2
    said = capsys.readouterr().err
    assert "there is no NVIDIA GPU here" in said and "on a machine that has one" in said
    assert "use c" not in said


def test_a_cpu_compiles_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert main(["warm", "--device", "cpu"]) == 2
    assert "there is nothing to compile for the device cpu" in capsys.readouterr().err
