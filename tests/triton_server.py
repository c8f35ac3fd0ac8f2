"""A real Triton server for tests, and a client made of nothing but `tritonclient`, HTTP and the contract."""

import asyncio
import base64
import http.client
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import tritonclient.grpc.aio as grpcclient
from free_ports import free_ports
from PIL import Image
from safetensors.torch import save_file
from tiny import tiny_config, tiny_model

from kestrel_core.intake.tokenizer import byte_document

ROOT = Path(__file__).parents[1]
VOCABULARY = 600  # beyond the single bytes, words with a space in front: answers then stream word by word
TYPES = {"TEMPERATURE": "FP32", "TOP_P": "FP32", "SPATIAL_REFS": "FP32", "SEED": "INT64"}
TYPES |= dict.fromkeys(("MAX_TOKENS", "MAX_OBJECTS", "TOP_K", "LOGPROBS", "PRIORITY"), "INT32")
TYPES |= dict.fromkeys(("REASONING", "STREAM"), "BOOL")
NUMPY = {"FP32": np.float32, "INT64": np.int64, "INT32": np.int32, "BOOL": np.bool_, "BYTES": np.object_}


def save_talkative(folder: Path) -> Path:
    """A tiny model with random weights, whose answers have hundreds of words."""
    config = tiny_config(3, vocab_size=VOCABULARY, max_context=4096)
    sections = {name: asdict(getattr(config, name)) for name in ("text", "vision", "region", "tokenizer")}
    document = json.loads(byte_document(config))
    taken = {*document["model"]["vocab"].values(), *config.tokenizer.control_ids}
    words = {f"\u0120word{i}": i for i in range(VOCABULARY) if i not in taken}
    document["model"]["vocab"] |= words
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "moondream3", **sections}))
    (folder / "tokenizer.json").write_text(json.dumps(document))
    save_file(dict(tiny_model(config).state_dict()), folder / "model.safetensors")
    return folder


def picture(seed: int = 0, size: tuple[int, int] = (60, 40)) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "png")
    return data.getvalue()


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def until(what: Callable[[], Any], within_s: float = 60.0) -> Any:
    """The first true value of `what`, asked again and again; for as long as the busiest machine may need."""
    deadline = time.monotonic() + within_s
    while not (value := what()):
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.01)
    return value


class Served:
    """A running `kestrel serve`."""

    def __init__(self, process: "subprocess.Popen[bytes]", ports: list[int], log: Path) -> None:
        self.process = process
        self.http_port, self.grpc_port, self.metrics_port, self.port = ports
        self.log = log

    def post(self, body: Any, path: str = "generate") -> tuple[int, Any]:
        """Status and answer; for a stream, all documents."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=60)
        try:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request("POST", f"/v2/models/moondream/{path}", data)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if path != "generate_stream":
            return answer.status, document(json.loads(text))
        events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        return answer.status, [document(json.loads(event)) for event in events]

    def ask(self, **inputs: Any) -> list[Any]:
        """All responses to one request over gRPC. Raises InferenceServerException."""
        [answer] = self.ask_all([inputs])
        if isinstance(answer, BaseException):
            raise answer
        return list(answer)

    def ask_all(self, requests: list[dict[str, Any]]) -> list[Any]:
        """All at once, each on a stream of its own. A refused one is its exception."""

        async def run() -> list[Any]:
            async with self.client() as client:
                return list(
                    await asyncio.gather(*(ask(client, **i) for i in requests), return_exceptions=True)
                )

        return asyncio.run(run())

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Any]:
        client = grpcclient.InferenceServerClient(f"127.0.0.1:{self.grpc_port}")
        try:
            yield client
        finally:
            await client.close()

    def metrics(self) -> dict[str, float]:
        """Every line of Prometheus' text."""
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[:1] != "#"}

    def metric(self, name: str) -> float:
        """The sum over all engines and labels."""
        return sum(value for line, value in self.metrics().items() if line.partition("{")[0] == name)

    def is_idle(self) -> bool:
        """Nothing is asked, waits or runs, and no page is held."""
        now = self.metrics()
        names = ("open_requests", "queued_requests", "running_requests", "pages_used")
        return not any(now[f'kestrel_{name}{{engine="0"}}'] for name in names)

    def num_ended(self, outcome: str) -> float:
        """Queries that ended so."""
        return self.metrics().get(
            f'kestrel_requests_total{{engine="0",outcome="{outcome}",skill="query"}}', 0
        )

    def is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.http_port}/v2/models/moondream/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def children(self, of: int | None = None) -> list[int]:
        """Process ids: of the server, and of its stubs."""
        parent = of or self.process.pid
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                rest = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(rest[1]) == parent and rest[0] != "Z":
                found.append(int(stat.parent.name))
        return found

    def end(self, within_s: float = 60.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)


@contextmanager
def served(
    log: Path,
    *arguments: str,
    gateway: bool = False,
    ports: list[int] | None = None,
    wrapper: Sequence[str] = (),
    **environment: str,
) -> Iterator[Served]:
    """`kestrel serve` on free ports, ready. Its variables are `environment` and no others of ours.

    What it writes to disk is beside its log: other servers clear away what killed ones have left in /tmp.
    """
    ports = ports or (free_ports(4) if gateway else [*free_ports(3), 0])
    flags = [*port_flags(ports), "--drain-s=0"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KESTREL_")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*wrapper, sys.executable, "-m", "kestrel_core.cli.main", "serve", *flags, *arguments],
            cwd=ROOT,
            env=kept | {"KESTREL_DEVICE": "cpu", "TMPDIR": str(log.parent)} | environment,
            stdout=output,
            stderr=output,
        )
        server = Served(process, ports, log)
        try:
            until(lambda: b"Ctrl-C ends it" in log.read_bytes() or process.poll() is not None, 180)
            assert process.poll() is None, log.read_text()
            yield server
        finally:
            if process.poll() is None:
                server.end()


def repository_with(folder: Path, parameters: dict[str, str], count: int = 1) -> Path:
    """A copy of the model repository with parameters, and with so many instances."""
    copy = folder / "repository"
    shutil.copytree(ROOT / "model_repository", copy, ignore=shutil.ignore_patterns("__pycache__"))
    config = copy / "moondream/config.pbtxt"
    text = config.read_text().replace("count: 1", f"count: {count}")
    for key, value in parameters.items():
        text += f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
    config.write_text(text)
    return copy


def port_flags(ports: list[int]) -> list[str]:
    """For `kestrel serve`: those of Triton, and at last the gateway's."""
    names = ("http-port", "grpc-port", "metrics-port", "port")
    return [f"--{name}={port}" for name, port in zip(names, ports, strict=True)]


async def ask(client: Any, **inputs: Any) -> list[Any]:
    """All responses to one request."""
    return [answer async for answer in stream(client, **inputs)]


async def stream(
    client: Any, request_id: str = "", timeout_us: int | None = None, **inputs: Any
) -> AsyncGenerator[Any, None]:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        tensors = [tensor(name, value) for name, value in inputs.items()]
        yield {"model_name": "moondream", "inputs": tensors, "request_id": request_id, "timeout": timeout_us}

    call = client.stream_infer(requests())
    try:
        async for result, error in call:
            if error is not None:
                raise error
            yield json.loads(result.as_numpy("TEXT_OUTPUT")[0])
    finally:
        call.cancel()  # changes nothing if it has ended


def tensor(name: str, value: Any) -> Any:
    if isinstance(value, grpcclient.InferInput):
        return value
    kind = TYPES.get(name, "BYTES")
    if kind == "BYTES":
        values = value if isinstance(value, list) else [value]
        array = np.array([v.encode() if isinstance(v, str) else v for v in values], dtype=np.object_)
    else:
        array = np.array(value if isinstance(value, list) else [value], dtype=NUMPY[kind])
    made = grpcclient.InferInput(name, list(array.shape), kind)
    made.set_data_from_numpy(array)
    return made


def document(answer: Any) -> Any:
    """The JSON inside an HTTP answer, or the answer itself if it is an error."""
    return json.loads(answer["TEXT_OUTPUT"]) if "TEXT_OUTPUT" in answer else answer


def refusal(error: BaseException | dict[str, Any]) -> str:
    """The message of an error, as a client sees it."""
    text = error["error"] if isinstance(error, dict) else getattr(error, "message", lambda: str(error))()
    return re.sub(r"^\[.*?\] ", "", text)
