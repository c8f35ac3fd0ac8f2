"""The engine of one start: built, asked at once, left alone until all is captured, and asked again."""

import json
import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from kestrel_core.build import Engine, build_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import find_model
from kestrel_core.intake.tokenizer import byte_document
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.loading import parse_device, random_network
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Event, Finished, Request, Settings
from kestrel_core.runtime.attention.late_prefills import THREAD
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_tools.bench.results import Row

WAIT_S = 120.0  # for an answer, and for what is captured later
SIZES = ((600, 850), (300, 300), (900, 700), (480, 640))  # of pictures, of 9, 1, 13 and 7 crops or so


def observed(task: Mapping[str, Any], parts: dict[str, float]) -> Row:
    engine = build_engine(RuntimeConfig(**task["config"]))
    ready_s = time.monotonic() - task["began_s"]
    watch = CaptureWatch(engine)
    parts |= engine.timeline.parts
    num_put_off = watch.num_put_off
    first = answers(engine, task["tokens"], seeds=range(1))
    answered_s = time.monotonic() - task["began_s"]
    first += answers(engine, task["tokens"], seeds=range(1, task["requests"]))
    captured_s = watch.wait(task["began_s"])
    compiled_s = wait_for_compiler(task["began_s"])  # or the next start would find half of it
    metrics = engine.metrics()
    used = metrics.get("device_bytes_used")
    later = answers(engine, task["tokens"], seeds=range(100, 100 + task["requests"]))
    row = {
        "parts": parts,
        "engine_s": engine.timeline.total_s,
        "ready_s": ready_s,
        "first_answer_s": answered_s,
        "put_off": num_put_off,
        "captured_s": captured_s,
        "compiled_s": compiled_s,
        "longest_capture_ms": 1000 * watch.longest_s,
        "graphs": engine.in_use()["graphs"],
        "planned_gib": gib(metrics.get("device_bytes_planned")),
        "captured_gib": gib(used),
        "used_gib": gib(engine.metrics().get("device_bytes_used")),
        "answers": {"first": first, "later": later},
    }
    engine.close()
    return row


def save(task: Mapping[str, Any]) -> None:
    """Random weights into a folder, as a checkpoint that a start can load."""
    config, folder = RuntimeConfig(**task["config"]), Path(task["save"])
    shape = find_model(config.model).config
    network = random_network(shape, parse_device(config.device), torch.bfloat16, config.seed)
    tensors = {name: weight.data.cpu() for name, weight in network.named_parameters()}
    save_file(tensors, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(tokenizer_of(shape), encoding="utf-8")


def tokenizer_of(shape: MoondreamConfig) -> str:
    """Bytes, and a word of its own for every other id: random weights say any of them, and answers
    without text would all be the same.
    """
    document = json.loads(byte_document(shape))
    vocabulary = document["model"]["vocab"]
    others = {*range(shape.text.vocab_size)} - {*vocabulary.values()}
    document["model"]["vocab"] = vocabulary | {f"#{token_id}": token_id for token_id in sorted(others)}
    return json.dumps(document)


class CaptureWatch:
    """Times what the loop captures after the start."""

    def __init__(self, engine: Engine) -> None:
        self.longest_s = 0.0
        self._runtime = engine.runtime
        self._capture = engine.runtime.capture_more
        engine.runtime.capture_more = self._timed  # type: ignore[method-assign]

    @property
    def num_put_off(self) -> int:
        return self._runtime.num_put_off if isinstance(self._runtime, CudaRuntime) else 0

    def wait(self, began_s: float) -> float | None:
        """Until all is captured. Seconds since the process began; None if that takes too long."""
        until_s = time.monotonic() + WAIT_S
        while self.num_put_off:
            if time.monotonic() > until_s:
                return None
            time.sleep(0.02)
        return time.monotonic() - began_s

    def _timed(self, idle: bool) -> bool:
        began_s = time.perf_counter()
        done = self._capture(idle)
        if done:
            self.longest_s = max(self.longest_s, time.perf_counter() - began_s)
        return done


def wait_for_compiler(began_s: float) -> float | None:
    """Seconds since the process began until all was compiled; None if nothing is, or that takes too long."""
    compiler = next((thread for thread in threading.enumerate() if thread.name == THREAD), None)
    if compiler is None:
        return None
    compiler.join(WAIT_S)
    return None if compiler.is_alive() else time.monotonic() - began_s


def answers(engine: Engine, tokens: int, seeds: range) -> list[str]:
    """One after the other, each about a picture that is new."""
    said = []
    for seed in seeds:
        height, width = SIZES[seed % len(SIZES)]
        picture = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
        settings = Settings(temperature=0, max_tokens=tokens)
        heard: queue.SimpleQueue[Event] = queue.SimpleQueue()
        engine.loop.submit(Request("query", {"question": "What is this?"}, picture, settings), heard.put)
        event = heard.get(timeout=WAIT_S)
        if isinstance(event, KestrelError):
            raise event
        assert isinstance(event, Finished)
        said.append(str(event.result.output["answer"]))
    return said


def gib(size: int | None) -> float | None:
    return None if size is None else size / 2**30
