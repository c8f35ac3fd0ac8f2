"""Checks before a server is started. Each raises one sentence that says what is wrong and what to do."""

import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from kestrel_core.config import variable
from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.triton.options import ServeOptions

SHARED_MEMORY = Path("/dev/shm")
NEEDED_BYTES, WANTED_BYTES = 32 * 2**20, 256 * 2**20
GPU_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/nvhost-ctrl-gpu"), Path("/dev/dxg"))  # also Jetson, WSL
DEVICE = re.compile(r"cpu|cuda(:\d+)?")


def check_device(device: str) -> None:
    if not DEVICE.fullmatch(device):
        raise InvalidRequest(f'device "{device}" is not one; use cpu, cuda or cuda:N')
    if device != "cpu" and not any(path.exists() for path in GPU_DEVICES):
        raise KestrelError(
            f'device is "{device}" and there is no NVIDIA GPU here; KESTREL_DEVICE=cpu serves without one'
        )


def free_shared_memory() -> int:
    try:
        return shutil.disk_usage(SHARED_MEMORY).free
    except OSError as error:
        raise KestrelError(
            f"{SHARED_MEMORY} cannot be used ({error.strerror}); requests reach the model through it"
        ) from None


def check_shared_memory(free: int, console: Console) -> None:
    """Pictures reach the model through it. A container has 64 MB of it by default."""
    advice = "start the container with --shm-size=1g"
    if free < NEEDED_BYTES:
        raise KestrelError(
            f"{SHARED_MEMORY} has {free >> 20} MB free, and pictures need {NEEDED_BYTES >> 20} MB; {advice}"
        )
    if free < WANTED_BYTES:
        console.print(f"{SHARED_MEMORY} has {free >> 20} MB free: large pictures may be refused; {advice}")


def check_adapters(folder: str | None, console: Console) -> None:
    """A folder that is not there may still come, so it is no error; but often its name is misspelt."""
    if folder is None or Path(folder).is_dir():
        return
    if Path(folder).exists():
        raise InvalidRequest(f"{variable('adapters')} is {folder}, which is no folder; name one")
    console.print(
        f"There is no folder {folder} ({variable('adapters')}): no adapter can be asked for until there is.",
        soft_wrap=True,
        markup=False,
    )


def check_ports(listeners: Mapping[str, tuple[str, int]]) -> None:
    """Host and port of each, by name."""
    ports = [port for _, port in listeners.values()]
    for name, (host, port) in listeners.items():
        option = "--port" if name == "gateway" else f"--{name}-port"
        if ports.count(port) > 1:
            raise KestrelError(f"port {port} is given twice; {', '.join(listeners)} need one each")
        if not 0 < port < 2**16:
            raise KestrelError(
                f"port {port} of {host} cannot be used: ports are 1 to 65535; choose with {option}"
            )
        try:
            [family, kind, protocol, _, _], *_ = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise KestrelError(
                f'host "{host}" cannot be used ({error.strerror}); choose with --host'
            ) from None
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                reason = f"{error.strerror}; choose with {option} or --host"
                raise KestrelError(f"port {port} of {host} cannot be used: {reason}") from None


def check_gateway(options: ServeOptions, missing: Sequence[str], console: Console) -> ServeOptions:
    """The options, without a gateway where it cannot be had. Keys without one would be a promise not kept."""
    if options.port and missing:
        console.print(
            f"{', '.join(missing)} cannot be found, so there is no gateway, only Triton; "
            "pip install 'kestrel-triton\\[gateway]', or say --port 0",
            soft_wrap=True,
        )
        options = replace(options, port=0)
    if options.api_keys is None:
        return options
    if not options.port:
        raise InvalidRequest("--api-keys needs the gateway, which checks them; give it a --port")
    try:
        options.api_keys.open("rb").close()
    except OSError as error:
        raise InvalidRequest(f"--api-keys {options.api_keys} cannot be read: {error.strerror}") from None
    return options
