"""What `kestrel serve` prints: once it answers, where, with what, and requests to paste into a shell."""

import shlex
import sys
from collections.abc import Collection
from pathlib import Path

from rich.console import Console

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.local_adapters import LocalAdapters
from kestrel_core.triton.options import ServeOptions

BANNER = """
{name} on {device} answers after {seconds:.1f} s: {addresses}
{in_use}{noise}
{ways_in}

Ctrl-C ends it."""
QUESTION = "How many circles are there?"  # in the sample; there are five
ADAPTED_QUESTION = "What color is the star?"  # for the adapter that comes along, about the same sample
NOISE = "Its weights are seeded random numbers, so its answers are noise.\n"
# A checkout, or the folder of installed packages: the client and its samples lie differently in the two.
_ROOT = Path(__file__).parents[2]
CLIENT_SCRIPT = _ROOT / "client/run.py"
SAMPLE = _ROOT / ("client" if CLIENT_SCRIPT.is_file() else "kestrel_client") / "samples/circles.png"


def say(console: Console, text: str) -> None:
    """Line by line and as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def banner(
    name: str, config: RuntimeConfig, seconds: float, options: ServeOptions, info: Collection[str]
) -> str:
    """`info` says what each engine computes with, where the server tells."""
    return BANNER.format(
        name=name,
        device=config.device,
        seconds=seconds,
        addresses=_addresses(options),
        in_use="".join(f"In use: {line}\n" for line in info),
        noise=NOISE if config.weights == "random" else "",
        ways_in="\n".join(f"  {way}" for way in (*_ways_in(options), *_adapted(config, options))),
    )


def _addresses(options: ServeOptions) -> str:
    """By host, which is told where any is another than this machine."""
    hosts = list(dict.fromkeys(host for host, _ in options.listeners.values()))
    groups = [
        ", ".join(f"{name} {port}" for name, (where, port) in options.listeners.items() if where == host)
        for host in hosts
    ]
    if hosts == ["127.0.0.1"]:
        return groups[0]
    return "; ".join(f"{group}, on {host}" for group, host in zip(groups, hosts, strict=True))


def _ways_in(options: ServeOptions) -> list[str]:
    """The page first, then a request by curl, then the client, which has no option for a key."""
    picture = shlex.quote(str(_near(SAMPLE)))
    client = (
        f"{_client()} --url {_place(options, 'grpc')} --image {picture} "
        f'--object "green circle" --question "{QUESTION}"'
    )
    if not options.port:
        http = _place(options, "http")
        return [f"{request(_near(SAMPLE))} | curl -s {http}/v2/models/moondream/generate -d @-", client]
    gateway = f"{_typed(options.host)}:{options.port}"
    curl = f'curl -s {gateway}/v1/query -F image=@{picture} -F question="{QUESTION}" -F temperature=0'
    if options.api_keys is not None:
        return [f"http://{gateway}/", f'{curl} -H "Authorization: Bearer $KEY"']
    return [f"http://{gateway}/", curl, client]


def _adapted(config: RuntimeConfig, options: ServeOptions) -> list[str]:
    """How to ask the adapter that comes along with the model, if one does."""
    folder = config.adapters_folder if config.adapters is None else None
    names = LocalAdapters(folder).names()
    if not names:
        return []
    picture, name = shlex.quote(str(_near(SAMPLE))), shlex.quote(names[0])
    if options.port:
        key = ' -H "Authorization: Bearer $KEY"' if options.api_keys is not None else ""
        return [
            f"curl -s {_typed(options.host)}:{options.port}/v1/query -F image=@{picture} "
            f'-F question="{ADAPTED_QUESTION}" -F adapter={name}{key}'
        ]
    return [
        f"{_client()} --url {_place(options, 'grpc')} --image {picture} "
        f'--skill query --question "{ADAPTED_QUESTION}" --adapter {name}'
    ]


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


def _place(options: ServeOptions, protocol: str) -> str:
    host, port = options.listeners[protocol]
    return f"{_typed(host)}:{port}"


def _typed(host: str) -> str:
    """A host as it would be typed on this machine."""
    if host in ("127.0.0.1", "0.0.0.0", "::", "::1"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _near(path: Path) -> Path:
    """A path as it would be typed here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
