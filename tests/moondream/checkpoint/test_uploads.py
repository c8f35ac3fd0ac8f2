"""Weights that several threads copy side by side: the same as by one, whatever their shape and type."""

from pathlib import Path

import pytest
import torch
from tiny_folder import save_tiny

from kestrel_core.moondream.checkpoint.uploads import AHEAD, Upload, side_by_side
from kestrel_core.moondream.checkpoint.weights import load_config
from kestrel_core.moondream.loading import load_network

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_threads_load_what_one_loads(tmp_path: Path, dtype: torch.dtype) -> None:
    folder = save_tiny(tmp_path / "tiny")
    config, told = load_config(folder), list[tuple[int, int]]()
    one = load_network(folder, config, CPU, dtype)
    many = load_network(folder, config, CPU, dtype, lambda *at: told.append(at), num_threads=3)
    expected = dict(one.named_parameters())
    for name, weight in many.named_parameters():
        assert weight.dtype == dtype and torch.equal(weight, expected[name]), name
    assert len(told) == len(expected) and told[-1][0] == told[-1][1]


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8, 8), (3, 5, 7), (0, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
def test_a_tensor_goes_in_parts(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    upload = Upload(CPU, part_bytes=16)
    source = (100 * torch.rand(shape)).to(dtype)
    out = torch.zeros(shape, dtype=dtype)
    upload.copy(out, source)
    upload.finish()
    assert torch.equal(out, source)


def test_what_is_laid_out_otherwise_is_converted() -> None:
    source = torch.rand(6, 4)
    for given, dtype in ((source.T, torch.float32), (source.T.contiguous(), torch.bfloat16)):
        out = torch.zeros(4, 6, dtype=dtype)
        Upload(CPU, part_bytes=16).copy(out, given)
        assert torch.equal(out, source.T.to(dtype))


def test_results_come_in_order_and_few_jobs_are_begun_ahead() -> None:
    begun = list[int]()

    def jobs() -> object:
        for job in range(60):
            begun.append(job)
            yield job

    results = side_by_side(lambda upload, job: 2 * job, jobs(), CPU, 2)  # type: ignore[arg-type,operator]
    assert next(results) == 0 and len(begun) <= 2 * AHEAD + 2
    assert list(results) == [2 * job for job in range(1, 60)]


def test_the_first_error_ends_it() -> None:
    def fail(upload: Upload, job: int) -> int:
        if job == 3:
            raise OSError("the disk is gone")
        return job

    with pytest.raises(OSError, match="the disk is gone"):
        list(side_by_side(fail, range(10), CPU, 2))
