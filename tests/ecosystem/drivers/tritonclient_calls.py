"""NVIDIA's tritonclient on Triton's own ports: `tritonclient_calls.py HTTP_PORT GRPC_PORT PICTURE`."""

import json
import queue
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

http_port, grpc_port, path = sys.argv[1:]


def stream(client: Any, **inputs: Any) -> list[Any]:
    tensors = []
    for name, value in inputs.items():
        is_flag = isinstance(value, bool)
        tensors.append(triton_grpc.InferInput(name, [1], "BOOL" if is_flag else "BYTES"))
        tensors[-1].set_data_from_numpy(np.array([value], dtype=np.bool_ if is_flag else np.object_))
    arrived: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: arrived.put((result, error)))
    client.async_stream_infer("moondream", tensors, enable_empty_final_response=True)
    documents = []
    while True:
        result, error = arrived.get(timeout=60)
        if error is not None:
            raise error
        if (text := result.as_numpy("TEXT_OUTPUT")) is not None and text.size:
            documents.append(json.loads(text[0]))
        if result.get_response().parameters["triton_final_response"].bool_param:
            client.stop_stream()
            return documents


picture = Path(path).read_bytes()
question = "How many circles are there?"
with triton_grpc.InferenceServerClient(f"127.0.0.1:{grpc_port}") as grpc:
    over_grpc = {
        "query": stream(grpc, SKILL="query", QUESTION=question, IMAGE=picture),
        "caption": stream(grpc, SKILL="caption", IMAGE=picture, STREAM=True),
        "detect": stream(grpc, SKILL="detect", OBJECT="green circle", IMAGE=picture),
        "ready": grpc.is_model_ready("moondream"),
    }
with triton_http.InferenceServerClient(f"127.0.0.1:{http_port}") as http:
    over_http = {
        "live": http.is_server_live(),
        "ready": http.is_server_ready(),
        "model_ready": http.is_model_ready("moondream"),
        "server": http.get_server_metadata(),
        "model": http.get_model_metadata("moondream"),
        "config": http.get_model_config("moondream"),
    }
print(json.dumps({"grpc": over_grpc, "http": over_http}))
