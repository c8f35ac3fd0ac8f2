"""`kestrel bench attacks`: what a normal user feels while somebody else attacks the same server.

Attackers run in a process of their own, so that the user's clock is not theirs. Each attack is sent over and
over, one after the other, and the user's latencies stand beside those of a time without any.
"""

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from time import monotonic

from rich.console import Console

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.attacks.doors import Target
from kestrel_tools.bench.attacks.neighbour import Neighbour
from kestrel_tools.bench.attacks.requests import ATTACKS, Attack
from kestrel_tools.bench.options import Attacks
from kestrel_tools.bench.results import Bench, Row
from kestrel_tools.progress import told

NOTHING = "nobody"
PAUSE_S = 0.01  # of an attacker whose attack is refused at once


def bench_attacks(run: Attacks, console: Console) -> bool:
    """Whether every answer was right and in time, and every attack ended as it must."""
    attacks, target = chosen(run), target_of(run)
    with told(console) as say:
        rows = asyncio.run(measure(run, target, attacks, say))
    undisturbed, *disturbed = rows
    for row in disturbed:
        row["slower"] = slower(row, undisturbed)
        row["held"] = held(row, run.slower)
    workload = {
        "user": f"{run.rate:g} requests/s, all skills but segment, half of them with a new picture",
        "attackers": f"each attack in a loop for {run.seconds:g} s, from a process of their own",
        "limit": f"P95 at most {run.slower:g} times the undisturbed one",
    }
    worst = max((row["slower"] or 0.0 for row in disturbed), default=0.0)
    passed = all(row["held"] for row in disturbed)
    bench = Bench(RuntimeConfig(), console, run.report, run.commit)
    bench.finish("attacks", None, workload, rows, passed=passed, worst=worst)
    return passed


def chosen(run: Attacks) -> list[Attack]:
    """Those whose name holds the words that were asked for, and that have a way in."""
    found = [
        attack
        for attack in ATTACKS
        if run.only.lower() in attack.name.lower() and (run.grpc is not None or not attack.needs_grpc)
    ]
    if not found:
        raise InvalidRequest(f'there is no attack "{run.only}"{"" if run.grpc else " without --grpc"}')
    return found


def target_of(run: Attacks) -> Target:
    host, _, port = run.url.removeprefix("http://").rstrip("/").rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidRequest(f'--url is "{run.url}"; it must be HOST:PORT of a gateway')
    return Target(host, int(port), run.grpc, run.key)


def slower(row: Row, undisturbed: Row) -> float | None:
    if row["p95_ms"] is None or not undisturbed["p95_ms"]:
        return None
    return float(row["p95_ms"] / undisturbed["p95_ms"])


def held(row: Row, limit: float) -> bool:
    """Nothing is held by a user who has no answers."""
    bad = row["wrong"] + row["refused"] + row["hung"] + row["not_as_it_must"]
    return not bad and row["slower"] is not None and bool(row["slower"] <= limit)


async def measure(
    run: Attacks, target: Target, attacks: list[Attack], say: Callable[[str], None]
) -> list[Row]:
    neighbour = Neighbour(target)
    say("asking alone")
    await neighbour.learn()
    rows = []
    attacker = replace(target, key=run.attacker_key or run.key)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        for name in (NOTHING, *(attack.name for attack in attacks)):
            say(f"attack: {name}")
            end = monotonic() + run.seconds
            loop = asyncio.get_running_loop()
            work = loop.run_in_executor(process, attack_on, name, attacker, run.seconds)
            seen = await neighbour.ask_on(run.rate, lambda end=end: monotonic() >= end)  # type: ignore[misc]
            rows.append({"attack": name, **seen.row(), **summary(name, await work)})
    return rows


def summary(name: str, outcomes: "Counter[str]") -> Row:
    right = next((attack.right for attack in ATTACKS if attack.name == name), frozenset[str]())
    bad = sum(count for outcome, count in outcomes.items() if outcome not in right)
    return {"sent": outcomes.total(), "outcomes": dict(outcomes), "not_as_it_must": bad}


def attack_on(name: str, target: Target, seconds: float) -> "Counter[str]":
    """In the attackers' process: how often the attack ended how."""
    attack = next((one for one in ATTACKS if one.name == name), None)
    return Counter() if attack is None else asyncio.run(over_and_over(attack, target, seconds))


async def over_and_over(attack: Attack, target: Target, seconds: float) -> "Counter[str]":
    found: Counter[str] = Counter()
    end = monotonic() + seconds

    async def client() -> None:
        while monotonic() < end:
            found[await attack(target)] += 1
            await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(client() for _ in range(attack.clients)))
    return found
