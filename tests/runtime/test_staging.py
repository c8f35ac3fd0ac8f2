"""What is sent of the staged arrays, and when a host buffer may be written again."""

import numpy as np
import pytest
import torch

from kestrel_core.runtime.staging import Field, PinnedBuffers, Staging, send

CPU = torch.device("cpu")
FIRST: dict[str, Field] = {"ids": (np.int64, (3,)), "flags": (np.uint8, (5,))}
SECOND: dict[str, Field] = {"weights": (np.float32, (2, 2))}
LAST: dict[str, Field] = {"indices": (np.int32, (6,))}


def staged() -> Staging:
    return Staging([("first", FIRST), ("second", SECOND), ("last", LAST)], CPU)


def fill(staging: Staging, value: int) -> None:
    for array in staging.open().values():
        array[...] = value


@pytest.mark.parametrize(
    ("last", "count", "sent"),
    [
        ("first", None, {"ids", "flags"}),
        ("second", None, {"ids", "flags", "weights"}),
        ("last", None, {"ids", "flags", "weights", "indices"}),
        ("last", 0, {"ids", "flags", "weights"}),
    ],
)
def test_the_groups_up_to_one_are_sent(last: str, count: int | None, sent: set[str]) -> None:
    staging = staged()
    fill(staging, 7)
    staging.send(last, count)
    for name, tensor in staging.tensors.items():
        assert torch.all(tensor == (7 if name in sent else 0)), name


def test_of_the_last_group_the_part_in_use_is_sent() -> None:
    staging = staged()
    fill(staging, 3)
    staging.send("last", 4)
    assert staging.tensors["indices"].tolist() == [3, 3, 3, 3, 0, 0]


def test_a_step_that_writes_less_sends_sound_values() -> None:
    staging = staged()
    staging.open()["ids"][:] = 1
    staging.send("last")
    assert staging.tensors["weights"].tolist() == [[0, 0], [0, 0]]


def test_arrays_of_any_size_are_sent_once() -> None:
    arrays = {"a": np.arange(5), "b": np.ones((2, 3), np.float32), "none": np.zeros(0, np.int32)}
    for name, tensor in send(arrays, CPU).items():
        assert np.array_equal(tensor.numpy(), arrays[name])


class Event:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def record(self) -> None:
        self.calls.append("record")

    def synchronize(self) -> None:
        self.calls.append("synchronize")


def test_a_buffer_is_written_again_only_when_the_device_has_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *shape, pin_memory, **kinds: zeros(*shape, **kinds))
    buffers = PinnedBuffers((4,), torch.device("cuda"), lambda buffer: buffer.numpy())
    written = []
    for value in range(1, 4):
        view = buffers.open()
        written.append(view[0])
        view[:] = value
        assert torch.all(buffers.current == value)
        buffers.sent()
    assert written == [0, 0, 1], "the third comes into the first one's buffer"
    assert sorted(event.calls for event in buffers._read) == [  # type: ignore[attr-defined]
        ["synchronize", "record"],
        ["synchronize", "record", "synchronize", "record"],
    ]
