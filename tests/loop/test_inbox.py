"""The inbox by itself; what becomes of its requests is in test_step_loop."""

import threading

import pytest

from kestrel_core.loop.inbox import Inbox, Ticket
from kestrel_core.protocol.errors import Overloaded, ShuttingDown
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.registry import builtin_skills


def ticket(num_bytes: int = 0) -> Ticket:
    request = Request("query", {"question": "Why?"})
    skill = builtin_skills()["query"]
    return Ticket(request, lambda event: None, skill, num_bytes, 0.0, 0.0)


def test_a_request_that_begins_makes_room_in_the_queue_and_is_still_open() -> None:
    inbox, first, second = Inbox(1, 10), ticket(7), ticket(4)
    inbox.add(first)
    with pytest.raises(Overloaded, match="1 requests wait"):
        inbox.add(second)
    inbox.begin(first)
    inbox.begin(first)
    assert (inbox.num_open, inbox.num_queued, inbox.queued_bytes) == (1, 0, 0)
    inbox.add(second)
    inbox.remove(second)
    assert (inbox.open_tickets(), inbox.num_queued, inbox.queued_bytes) == ([first], 0, 0)


def test_a_closed_inbox_is_drained_when_the_last_has_left() -> None:
    inbox, last = Inbox(9, 9), ticket()
    assert not inbox.is_drained
    inbox.add(last)
    inbox.close()
    assert not inbox.is_drained
    with pytest.raises(ShuttingDown, match="shutting down"):
        inbox.add(ticket())
    inbox.remove(last)
    assert inbox.is_drained


def test_a_broken_engine_refuses_as_one_that_shuts_down_not_as_one_that_is_busy() -> None:
    inbox = Inbox(9, 9)
    inbox.mark_broken()
    with pytest.raises(ShuttingDown, match="the engine has failed"):
        inbox.add(ticket())


def test_a_call_and_closing_wake_whoever_waits() -> None:
    for wake in (lambda inbox: inbox.call(lambda: None), Inbox.close):
        inbox = Inbox(9, 9)
        waiting = threading.Thread(target=inbox.wait, args=(None,), daemon=True)
        waiting.start()
        wake(inbox)
        waiting.join(60)
        assert not waiting.is_alive() and len(list(inbox.take_calls())) == 1
    Inbox(9, 9).wait(0.0)


def test_calls_that_calls_add_are_taken_too() -> None:
    inbox, heard = Inbox(9, 9), list[int]()
    inbox.call(lambda: inbox.call(lambda: heard.append(2)))
    for call in inbox.take_calls():
        call()
    assert heard == [2] and not inbox.has_calls
