"""The doctor on a GPU: what it tries out there works, and the bundled model is healthy."""

import importlib.util
import json

import pytest
import torch

from kestrel_tools.commands import main
from kestrel_tools.doctor.device import try_flashinfer, try_kernels
from kestrel_tools.doctor.report import Verdict

pytestmark = pytest.mark.gpu

DEVICE = torch.device("cuda")


def test_our_kernels_are_those_of_plain_torch() -> None:
    assert try_kernels(DEVICE).verdict is Verdict.OK


def test_flashinfer_is_sdpa() -> None:
    if importlib.util.find_spec("flashinfer") is None:
        pytest.skip("FlashInfer is not installed")
    assert try_flashinfer(DEVICE).verdict is Verdict.OK


def test_the_bundled_model_is_healthy_on_cuda(capsys: pytest.CaptureFixture[str]) -> None:
    ports = ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]
    main(["doctor", "--json", "--device", "cuda", *ports])
    rows = json.loads(capsys.readouterr().out)["rows"]
    # Whether there is a Triton server, and how much shared memory, is the machine's own affair.
    own = ("Triton server", "NumPy", "shared memory", "open files")
    assert [row for row in rows if row["verdict"] == "fault" and row["check"] not in own] == []
    verdicts = {row["check"]: row["verdict"] for row in rows}
    assert verdicts["GPU"] == verdicts["GPU memory"] == verdicts["our kernels"] == verdicts["alone"] == "ok"
