"""The whole stack as strangers meet it: `kestrel serve --demo` with keys, and a user who notices nothing."""

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triton_server import Served, served, until

from kestrel_gateway.admission.key_file import digest_of
from kestrel_tools.bench.attacks.doors import Reply, Target, post
from kestrel_tools.bench.attacks.neighbour import Neighbour, Seen

USER, ATTACKER = "kestrel-user", "kestrel-attacker"


@dataclass
class Stack:
    served: Served
    user: Target
    attacker: Target
    neighbour: Neighbour  # who knows the answers already

    def post(self, path: str, fields: dict[str, Any], key: str = ATTACKER) -> Reply:
        return asyncio.run(post(replace(self.attacker, key=key), path, fields))

    @contextmanager
    def undisturbed(self) -> Iterator[Seen]:
        """A user asks from before an attack to behind it; every answer is the one that was given alone."""
        is_over, seen = threading.Event(), Seen()

        async def ask_on() -> None:
            number = 0
            while not is_over.is_set() or number < 3:
                await self.neighbour.ask(number, seen)
                number += 1

        caller = threading.Thread(target=lambda: asyncio.run(ask_on()))
        caller.start()
        try:
            yield seen
        finally:
            is_over.set()
            caller.join(120)
        assert not caller.is_alive(), "a user waits for ever"
        assert (seen.wrong, seen.refused, seen.hung) == (0, 0, 0), seen
        assert len(seen.latencies_ms) >= 3

    def processes(self) -> dict[str, int]:
        """Who is running, by their roles: the same ids before and after mean that nobody died."""
        found = {"supervisor": self.served.process.pid}
        for child in self.served.children():
            name = "server" if "triton" in Path(f"/proc/{child}/comm").read_text() else "gateway"
            found[name] = child
        [found["stub"]] = self.served.children(found["server"])
        return found

    def footprint(self) -> dict[str, int]:
        """What an idle stack holds of what the machine has only so much of."""
        found = {}
        for name, pid in self.processes().items():
            found[f"{name}'s descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
            found[f"{name}'s threads"] = len(os.listdir(f"/proc/{pid}/task"))
        maps = Path(f"/proc/{self.processes()['server']}/maps").read_text()
        regions = {word for word in maps.split() if word.startswith("/dev/shm/")}
        assert regions, "the server and its stub share some at any time"
        return found | {"regions of shared memory": len(regions)}

    def sizes(self) -> dict[str, int]:
        """Bytes of memory by role; what several share is divided among them."""
        found = {}
        for name, pid in self.processes().items():
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            [found[name]] = [1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")]
        return found

    def memory(self) -> int:
        return sum(self.sizes().values())

    def await_idle(self, before: dict[str, int], within_s: float = 60.0, slack: int = 0) -> None:
        """Nothing is asked, waits or runs, no page is held, and all that was taken is given back."""
        until(self.served.is_idle, within_s)
        with suppress(AssertionError):
            until(lambda: not self.grown(before, slack), within_s)
        assert self.grown(before, slack) == {}

    def grown(self, before: dict[str, int], slack: int = 0) -> dict[str, int]:
        now = self.footprint()
        return {name: now[name] - count for name, count in before.items() if now[name] > count + slack}


@contextmanager
def stack(folder: Path, *arguments: str, wrapper: Sequence[str] = (), **environment: str) -> Iterator[Stack]:
    """`wrapper`: a command that runs the server, and becomes it."""
    keys = folder / "keys.toml"
    lines = (
        f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(key.encode()).hex()}"\nsalt_cache = true\n'
        for name, key in (("user", USER), ("attacker", ATTACKER))
    )
    keys.write_text("\n".join(lines))
    flags = ("--demo", "--guard-triton", f"--api-keys={keys}", *arguments)
    with served(folder / "log", *flags, gateway=True, wrapper=wrapper, **environment) as it:
        user = Target("127.0.0.1", it.port, f"127.0.0.1:{it.grpc_port}", USER)
        neighbour = Neighbour(user)
        asyncio.run(neighbour.learn())
        yield Stack(it, user, replace(user, key=ATTACKER), neighbour)
