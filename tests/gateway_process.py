"""`kestrel gateway` as a process of its own, and plain HTTP to it."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from free_ports import free_ports
from triton_server import ROOT, until


@dataclass
class GatewayProcess:
    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def status_of(self, path: str) -> int:
        """0 if there is no answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            try:
                connection.request("GET", path)
                return connection.getresponse().status
            except (OSError, http.client.HTTPException):
                return 0

    def children(self) -> list[int]:
        """The processes that it has started, other than the one that multiprocessing keeps books with."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                is_worker = b"spawn_main" in (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == self.process.pid and is_worker:
                found.append(int(folder.name))
        return found

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def gateway_process(log: Path, *flags: str, path: str = "/readyz") -> Iterator[GatewayProcess]:
    """Started, and seen to answer `path`. What it writes to disk is beside its log."""
    [port] = free_ports(1)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KESTREL_")}
    paths = (str(ROOT / folder) for folder in (".", "client", "gateway", "tools"))
    kept |= {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(log.parent)}
    command = [sys.executable, "-m", "kestrel_gateway", f"--port={port}", "--drain-s=0", *flags]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=log.parent, env=kept, stdout=output, stderr=output)
        gateway = GatewayProcess(process, port, log)
        try:
            until(lambda: gateway.status_of(path) == 200 or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield gateway
        finally:
            if process.poll() is None:
                gateway.end()
