"""Threads that prepare requests, shared by tenants."""

import threading
from typing import Any

import pytest

from kestrel_core.loop.fair_workers import FairWorkers
from kestrel_core.loop.inbox import Ticket
from kestrel_core.protocol.messages import Request


def ticket_of(tenant: str) -> Ticket:
    nobody: Any = None
    return Ticket(Request("query", tenant=tenant), nobody, nobody, 0, 0.0, 0.0)


def test_a_tenant_does_not_wait_behind_the_flood_of_another() -> None:
    workers, done = FairWorkers(1, "test"), list[str]()
    begun, may_end = threading.Event(), threading.Event()

    def keep_busy(ticket: Ticket) -> None:
        begun.set()
        assert may_end.wait(60)

    workers.submit(keep_busy, ticket_of("greedy"))
    assert begun.wait(60)
    for tenant in ("greedy",) * 5 + ("modest",) * 2 + ("other",):
        workers.submit(lambda ticket: done.append(ticket.request.tenant), ticket_of(tenant))
    may_end.set()
    workers.shutdown()
    assert done == ["greedy", "modest", "other", "greedy", "modest", "greedy", "greedy", "greedy"]


def test_within_a_tenant_the_first_comes_first_and_nothing_is_lost() -> None:
    workers, lock, done = FairWorkers(4, "test"), threading.Lock(), list[Ticket]()
    tickets = [ticket_of(f"tenant {number % 7}") for number in range(500)]

    def note(ticket: Ticket) -> None:
        with lock:
            done.append(ticket)

    for ticket in tickets:
        workers.submit(note, ticket)
    workers.shutdown()
    assert len(done) == 500 and set(map(id, done)) == set(map(id, tickets))


def test_when_they_are_shut_down_nothing_is_taken() -> None:
    workers = FairWorkers(1, "test")
    workers.shutdown()
    with pytest.raises(RuntimeError):
        workers.submit(lambda ticket: None, ticket_of(""))
