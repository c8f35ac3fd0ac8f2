"""Facts about a machine, judged: no such machine is needed."""

import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pyvips

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.images import ACCEPTED
from kestrel_tools.doctor import machine, model
from kestrel_tools.doctor.facts import (
    DOWNLOAD_BYTES,
    GpuFacts,
    TritonFacts,
    missing_bytes,
    port_trouble,
)
from kestrel_tools.doctor.formats import FORMATS, PICTURES, try_formats
from kestrel_tools.doctor.options import DoctorOptions
from kestrel_tools.doctor.report import Finding, Verdict

H200 = GpuFacts("13.0", True, "NVIDIA H200", "580.1", (9, 0), 140 * 2**30, 141 * 2**30)
NO_GPU = GpuFacts("13.0", False)
WHEEL = TritonFacts(True, "/here/tritonserver", from_wheel=True)
MIB = 2**20
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("finding", "verdict", "word"),
    [
        (machine.judge_python("3.12.1", True), Verdict.OK, "3.12.1"),
        (machine.judge_python("3.14.0", True), Verdict.WARNING, "tested are 3.11 and 3.12"),
        (machine.judge_python("3.11.9", False), Verdict.WARNING, "without a shared library"),
        (machine.judge_torch("2.11.0+cu130", on_cuda=True), Verdict.OK, "as measured"),
        (machine.judge_torch("2.1.0", on_cuda=True), Verdict.WARNING, "measured was 2.11"),
        (machine.judge_torch(None, on_cuda=False), Verdict.FAULT, "not installed"),
        (machine.judge_gpu(H200, is_asked_for=True), Verdict.OK, "compute capability 9.0"),
        (machine.judge_gpu(replace(H200, capability=(7, 5)), True), Verdict.WARNING, "no bfloat16"),
        (machine.judge_gpu(NO_GPU, is_asked_for=False), Verdict.SKIPPED, "no NVIDIA GPU"),
        (machine.judge_gpu(NO_GPU, is_asked_for=True), Verdict.FAULT, "no such GPU"),
        (machine.judge_gpu(GpuFacts(None, True), False), Verdict.WARNING, "built without CUDA"),
        (machine.judge_gpu(GpuFacts(None, True), True), Verdict.FAULT, "built without CUDA"),
        (machine.judge_gpu(GpuFacts("13.0", True), True), Verdict.FAULT, "cannot use it"),
        (machine.judge_gpu_memory(H200, 18 * 2**30), Verdict.OK, "140.0 GiB free"),
        (
            machine.judge_gpu_memory(replace(H200, free_bytes=9 * 2**30), 18 * 2**30),
            Verdict.FAULT,
            "20.0 GiB",
        ),
        (machine.judge_gpu_memory(NO_GPU, 0), Verdict.SKIPPED, "no GPU"),
        (machine.judge_flashinfer("0.6.0", on_cuda=True), Verdict.OK, "as measured"),
        (machine.judge_flashinfer("0.5.1", on_cuda=True), Verdict.WARNING, "measured was 0.6.0"),
        (machine.judge_flashinfer(None, on_cuda=True), Verdict.WARNING, "not installed"),
        (machine.judge_flashinfer("0.6.0", on_cuda=False), Verdict.SKIPPED, "CUDA"),
        (machine.judge_triton(WHEEL), Verdict.OK, "stub starts"),
        (machine.judge_triton(TritonFacts(False)), Verdict.WARNING, "no Triton server"),
        (machine.judge_triton(replace(WHEEL, trouble="no stub for 3.13")), Verdict.FAULT, "no stub"),
        (machine.judge_numpy("1.26.4", WHEEL), Verdict.OK, "1.26.4"),
        (machine.judge_numpy("2.1.0", WHEEL), Verdict.FAULT, "kills the Python stub"),
        (machine.judge_numpy("2.1.0", replace(WHEEL, from_wheel=False)), Verdict.OK, "2.1.0"),
        (machine.judge_shared_memory(2**30, 2**30), Verdict.OK, "1,024 MiB free"),
        (machine.judge_shared_memory(64 * MIB, 64 * MIB), Verdict.WARNING, "refused"),
        (machine.judge_shared_memory(8 * MIB, 64 * MIB), Verdict.FAULT, "32 MiB"),
        (machine.judge_port("http", "::1", 8000, ""), Verdict.OK, "8000 of ::1 is free"),
        (machine.judge_port("http", "::1", 8000, "in use"), Verdict.WARNING, "in use"),
        (machine.judge_file_limit(4096, 4096), Verdict.OK, "4,096"),
        (machine.judge_file_limit(-1, -1), Verdict.OK, "no limit"),
        (machine.judge_file_limit(512, 4096), Verdict.WARNING, "512"),
        (machine.judge_file_limit(64, 4096), Verdict.FAULT, "64"),
        (machine.judge_disk(Path("/hub"), 2**30, 0), Verdict.OK, "nothing has to be"),
        (machine.judge_disk(Path("/hub"), 2**40, 2**34), Verdict.OK, "16.0 GiB are to be"),
        (machine.judge_disk(Path("/hub"), 2**30, 2**34), Verdict.FAULT, "1.0 GiB free"),
    ],
)
def test_a_fact_is_judged(finding: Finding, verdict: Verdict, word: str) -> None:
    assert finding.verdict is verdict and word in finding.found
    assert bool(finding.advice) == (verdict in (Verdict.WARNING, Verdict.FAULT))


def test_the_measured_versions_are_the_pinned_ones() -> None:
    pins = {name: (ROOT / f"constraints-{name}.txt").read_text().splitlines() for name in ("gpu", "cpu")}
    assert f"torch=={machine.MEASURED_TORCH['cuda']}.0" in pins["gpu"]
    assert f"torch=={machine.MEASURED_TORCH['cpu']}.0" in pins["cpu"]
    assert f"flashinfer-python=={machine.MEASURED_FLASHINFER}" in pins["gpu"]


def test_a_port_that_somebody_listens_on_is_seen() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert port_trouble("http", "127.0.0.1", port)
    assert not port_trouble("http", "127.0.0.1", port), "it has been closed"


def test_ports_are_looked_at_where_a_server_would_listen() -> None:
    """Triton's metrics stay on this machine, unless Triton itself is to be reached."""
    here = DoctorOptions().listeners
    assert here == {
        "gateway": ("127.0.0.1", 8080),
        "http": ("127.0.0.1", 8000),
        "grpc": ("127.0.0.1", 8001),
        "metrics": ("127.0.0.1", 8002),
    }
    everywhere = {name: ("0.0.0.0", port) for name, (_, port) in here.items()}
    assert DoctorOptions(host="0.0.0.0").listeners == everywhere | {"metrics": ("127.0.0.1", 8002)}
    assert DoctorOptions(host="0.0.0.0", expose_triton=True).listeners == everywhere


def test_only_a_published_model_that_is_not_cached_has_to_be_downloaded(tmp_path: Path) -> None:
    published = RuntimeConfig(model="moondream2")
    assert missing_bytes(RuntimeConfig(model="moondream-tiny"), tmp_path) == 0
    assert missing_bytes(replace(published, model_path="here"), tmp_path) == 0
    assert missing_bytes(published, tmp_path) == DOWNLOAD_BYTES["moondream2"]
    blobs = tmp_path / "models--vikhyatk--moondream2/blobs"
    blobs.mkdir(parents=True)
    with (blobs / "half").open("wb") as half:
        half.truncate(2_000_000_000)  # takes no room on the disk
    assert missing_bytes(published, tmp_path) == DOWNLOAD_BYTES["moondream2"] - 2_000_000_000
    with (blobs / "rest").open("wb") as rest:
        rest.truncate(1_860_000_000)
    assert missing_bytes(published, tmp_path) == 0


def test_every_accepted_format_is_tried_and_decoded() -> None:
    assert set(FORMATS) == set(ACCEPTED.replace(" or ", ", ").split(", "))
    assert try_formats().verdict is Verdict.OK


def test_a_format_that_is_decoded_wrongly_is_named(tmp_path: Path) -> None:
    for file in FORMATS.values():
        (tmp_path / file).write_bytes((PICTURES / file).read_bytes())
    (tmp_path / "halves.gif").write_bytes(b"GIF89a and no more")
    grey = pyvips.Image.new_from_array(np.full((32, 32, 3), 128, np.uint8)).copy(interpretation="srgb")
    grey.pngsave(str(tmp_path / "halves.png"))
    finding = try_formats(tmp_path)
    assert finding.verdict is Verdict.FAULT
    assert "GIF (BadImage" in finding.found and "PNG (its colours are 128 of 255 away)" in finding.found
    assert "JPEG" not in finding.found


def test_what_int4_needs_is_counted() -> None:
    two = RuntimeConfig(model="moondream2", quantize="int4", step_tokens=1024)
    assert 2.0e9 < model.weights_bytes(two) + model.work_bytes(two) < 2.3e9
    assert model.work_bytes(replace(two, quantize="off")) == machine.WORK_BYTES
