"""What `kestrel serve` prints once it answers: where, with what, and two requests to paste into a shell."""

import shlex
import sys
from collections.abc import Collection
from pathlib import Path

from kestrel_core.config import RuntimeConfig

BANNER = """
{name} on {device} answers after {seconds:.1f} s: {addresses}
{in_use}{noise}
  {request} | curl -s {http}/v2/models/moondream/generate -d @-
  {client} --url {grpc} --image {picture} --object "green circle" --question "{question}"

Ctrl-C ends it."""
QUESTION = "How many green circles are there?"  # in the sample; there are five
NOISE = "Its weights are seeded random numbers, so its answers are noise.\n"
# A checkout, or the folder of installed packages: the client and its samples lie differently in the two.
_ROOT = Path(__file__).parents[2]
CLIENT_SCRIPT = _ROOT / "client/run.py"
SAMPLE = _ROOT / ("client" if CLIENT_SCRIPT.is_file() else "kestrel_client") / "samples/circles.png"


def banner(
    name: str, config: RuntimeConfig, seconds: float, host: str, ports: dict[str, int], info: Collection[str]
) -> str:
    """`info` says what each engine computes with, where the server tells."""
    return BANNER.format(
        name=name,
        device=config.device,
        seconds=seconds,
        addresses=", ".join(f"{protocol} {port}" for protocol, port in ports.items())
        + ("" if host == "127.0.0.1" else f", on {host}"),
        in_use="".join(f"In use: {line}\n" for line in info),
        noise=NOISE if config.weights == "random" else "",
        request=request(_near(SAMPLE)),
        question=QUESTION,
        client=_client(),
        picture=shlex.quote(str(_near(SAMPLE))),
        http=f"{_typed(host)}:{ports['http']}",
        grpc=f"{_typed(host)}:{ports['grpc']}",
    )


def request(picture: Path) -> str:
    """A command that writes the request. By pipe, since no argument of a command may be as long as a picture.

    `base64` breaks its lines; `curl -d @-` takes the breaks out again.
    """
    fields = f'"SKILL": "query", "QUESTION": "{QUESTION}", "TEMPERATURE": 0'
    return f"""(printf '{{{fields}, "IMAGE": "'; base64 < {shlex.quote(str(picture))}; printf '"}}')"""


def _client() -> str:
    python = Path(sys.executable)
    if CLIENT_SCRIPT.is_file():
        return f"{shlex.quote(str(_near(python)))} {shlex.quote(str(_near(CLIENT_SCRIPT)))}"
    command = python.with_name("kestrel-client")
    if command.is_file():
        return shlex.quote(str(_near(command)))
    return f"{shlex.quote(str(_near(python)))} -m kestrel_client"


def _typed(host: str) -> str:
    """A host as it would be typed on this machine."""
    if host in ("127.0.0.1", "0.0.0.0", "::", "::1"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _near(path: Path) -> Path:
    """A path as it would be typed here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
