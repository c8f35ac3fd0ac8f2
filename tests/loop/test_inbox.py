"""The door by itself; what goes through it is in test_loop."""

import threading

import pytest
from fakes import LANGUAGE

from kestrel_core.loop.inbox import Door, Ticket
from kestrel_core.protocol.errors import Overloaded
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.registry import builtin_skills


def ticket(num_bytes: int = 0) -> Ticket:
    request = Request("query", {"question": "Why?"})
    skill = builtin_skills()["query"]
    return Ticket(request, lambda event: None, skill, skill.prompt(request, LANGUAGE), num_bytes, 0.0)


def test_who_begins_makes_room_in_the_queue_and_is_still_inside() -> None:
    door, first, second = Door(1, 10), ticket(7), ticket(4)
    door.enter(first)
    with pytest.raises(Overloaded, match="1 requests wait"):
        door.enter(second)
    door.begin(first)
    door.begin(first)
    assert (door.num_inside, door.num_queued, door.queued_bytes) == (1, 0, 0)
    door.enter(second)
    door.leave(second)
    assert (door.inside(), door.num_queued, door.queued_bytes) == ([first], 0, 0)


def test_a_closed_door_is_deserted_when_the_last_has_left() -> None:
    door, last = Door(9, 9), ticket()
    assert not door.is_deserted
    door.enter(last)
    door.close()
    assert not door.is_deserted
    with pytest.raises(Overloaded, match="shutting down"):
        door.enter(ticket())
    door.leave(last)
    assert door.is_deserted


def test_whoever_waits_is_woken_by_a_call_and_by_the_closing() -> None:
    for wake in (lambda door: door.call(lambda: None), Door.close):
        door = Door(9, 9)
        waiting = threading.Thread(target=door.wait, args=(None,), daemon=True)
        waiting.start()
        wake(door)
        waiting.join(30)
        assert not waiting.is_alive() and len(list(door.calls())) == 1
    Door(9, 9).wait(0.0)


def test_calls_that_come_of_calls_are_given_too() -> None:
    door, heard = Door(9, 9), list[int]()
    door.call(lambda: door.call(lambda: heard.append(2)))
    for call in door.calls():
        call()
    assert heard == [2] and not door.has_calls
