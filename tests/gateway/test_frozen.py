"""A server that neither answers nor ends is noticed, and so is that it goes on."""

import os
import signal
from pathlib import Path

import pytest
from attacks.lossy import Loss, lossy
from gateway_process import gateway_process
from triton_server import save_talkative, served, until

pytestmark = pytest.mark.triton


def test_a_stopped_server_is_not_ready_and_a_continued_one_is(tmp_path: Path) -> None:
    model = save_talkative(tmp_path / "model")
    with (
        served(tmp_path / "serve.log", f"--model-path={model}", "--port=0") as server,
        gateway_process(tmp_path / "gateway.log", f"--upstream=127.0.0.1:{server.grpc_port}") as gateway,
    ):
        [triton] = server.children()
        stopped = (server.process.pid, triton)  # who keeps the server would replace it after a few seconds
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: gateway.status_of("/readyz") == 503)
            assert gateway.status_of("/livez") == 200
            assert "it has fallen silent" in gateway.log.read_text()
        finally:
            for pid in reversed(stopped):
                os.kill(pid, signal.SIGCONT)
        until(lambda: gateway.status_of("/readyz") == 200)


def test_a_connection_that_swallows_everything_is_replaced(tmp_path: Path) -> None:
    """As one does whose bytes were changed on the way: the server waits for the rest of a frame for ever."""
    model = save_talkative(tmp_path / "model")
    with (
        served(tmp_path / "serve.log", f"--model-path={model}", "--port=0") as server,
        lossy(server.grpc_port, Loss()) as proxy,
        gateway_process(tmp_path / "gateway.log", f"--upstream=127.0.0.1:{proxy.port}") as gateway,
    ):
        proxy.loss.swallows_before = next(proxy.num_connections)
        until(lambda: "it has fallen silent" in gateway.log.read_text())
        until(lambda: gateway.status_of("/readyz") == 200, 30)
