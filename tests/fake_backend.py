"""In place of `triton_python_backend_utils`: what Triton's stub gives a model, as far as ours uses it."""

import json
import threading
from typing import Any, ClassVar

import numpy as np

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class TritonError:
    INVALID_ARG, NOT_FOUND, UNAVAILABLE, INTERNAL, CANCELLED = range(5)

    def __init__(self, message: str, code: int) -> None:
        self.message, self.code = message, code


class Tensor:
    def __init__(self, name: str, values: Any) -> None:
        self._name, self._values = name, values

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> Any:
        return self._values


class InferenceResponse:
    def __init__(self, output_tensors: Any = (), error: TritonError | None = None) -> None:
        self.tensors, self.error = list(output_tensors), error


class Sender:
    """Keeps what is sent, and complains about anything after the final flag."""

    def __init__(self) -> None:
        self.responses: list[InferenceResponse] = []
        self.ended = threading.Event()
        self.cancelled = False

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        assert not self.ended.is_set(), "the response sender has been closed"
        if response is not None:
            self.responses.append(response)
        if flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL:
            self.ended.set()

    def is_cancelled(self) -> bool:
        return self.cancelled

    def documents(self) -> list[Any]:
        assert self.ended.wait(60)
        return [json.loads(response.tensors[0].as_numpy()[0]) for response in self.responses]

    def error(self) -> str:
        assert self.ended.wait(60)
        error = self.responses[-1].error
        assert error is not None
        return error.message


class TritonRequest:
    def __init__(self, parameters: str = "", timeout_us: int = 0, **inputs: Any) -> None:
        self.sender = Sender()
        self._parameters, self._timeout_us = parameters, timeout_us
        self._tensors = [Tensor(name, values(value)) for name, value in inputs.items()]

    def inputs(self) -> list[Tensor]:
        return self._tensors

    def request_id(self) -> str:
        return ""

    def timeout(self) -> int:
        return self._timeout_us

    def parameters(self) -> str:
        return self._parameters

    def get_response_sender(self) -> Sender:
        return self.sender


def values(value: Any) -> Any:
    """As `as_numpy` gives them: texts and pictures as objects."""
    if isinstance(value, str | bytes):
        return np.array([value.encode() if isinstance(value, str) else value], dtype=np.object_)
    return value if isinstance(value, np.ndarray) else np.array([value])


class Metric:
    alive: ClassVar[set[int]] = set()
    threads: ClassVar[set[str]] = set()
    values: ClassVar[dict[tuple[str, str], list[float]]] = {}

    def __init__(self, family: "MetricFamily", labels: dict[str, str], buckets: list[float] | None) -> None:
        assert (buckets is not None) == (family.kind == MetricFamily.HISTOGRAM)
        self.family, self.labels = family, labels
        self.alive.add(id(self))

    def increment(self, by: float) -> None:
        assert self.family.kind == MetricFamily.COUNTER and by >= 0
        self._note(by)

    def set(self, value: float) -> None:
        assert self.family.kind == MetricFamily.GAUGE
        self._note(value)

    def observe(self, value: float) -> None:
        assert self.family.kind == MetricFamily.HISTOGRAM
        self._note(value)

    def _note(self, value: float) -> None:
        self.threads.add(threading.current_thread().name)
        self.values.setdefault((self.family.name, json.dumps(self.labels, sort_keys=True)), []).append(value)

    def __del__(self) -> None:
        """A round trip to the server, as every call of a metric is."""
        self.threads.add(threading.current_thread().name)
        self.alive.discard(id(self))


class MetricFamily:
    COUNTER, GAUGE, HISTOGRAM = range(3)

    def __init__(self, name: str, description: str, kind: int) -> None:
        self.name, self.description, self.kind = name, description, kind

    def Metric(self, labels: dict[str, str], buckets: list[float] | None = None) -> Metric:
        return Metric(self, labels, buckets)
