"""What `kestrel serve` says of the programs it keeps running: how often each was started again, and why.

It writes a small file, which is read whenever somebody asks: for readiness, or for metrics. A gateway that
somebody else has started has none.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Keeper(Collector):
    def __init__(self, status: Path | None) -> None:
        self._status = status

    def told(self) -> str:
        """Which program keeps dying, in a sentence; empty if none does."""
        return "; ".join(
            f"{name} has died {it['in_a_row']} times in a row and is started again, the last time because "
            f"{it['cause']}"
            for name, it in self._programs().items()
            if it["is_looping"]
        )

    def collect(self) -> Iterator[Metric]:
        programs = self._programs()
        if not programs:
            return
        restarts = CounterMetricFamily(
            "kestrel_restarts", "times that it was started again", labels=["program"]
        )
        looping = GaugeMetricFamily("kestrel_crash_loop", "1: it keeps dying", labels=["program"])
        for name, it in programs.items():
            restarts.add_metric([name], it["restarts"])
            looping.add_metric([name], int(it["is_looping"]))
        yield restarts
        yield looping

    def _programs(self) -> dict[str, Any]:
        try:
            return {} if self._status is None else dict(json.loads(self._status.read_text()))
        except (OSError, ValueError):
            return {}
