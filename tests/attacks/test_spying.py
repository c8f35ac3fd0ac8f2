"""What one caller can learn of what another one asked: nothing, neither from counts nor from the clock."""

from statistics import median

import pytest
from attacks.stack import ATTACKER, USER, Stack

from kestrel_tools.bench.attacks.neighbour import fields_of

pytestmark = pytest.mark.triton

SECRET = "The door opens with 40283716."


def cached(shared: Stack, question: str, key: str) -> int:
    reply = shared.post("/v1/query", {"question": question, "settings": {"max_tokens": 1}}, key)
    assert reply.status == 200
    return int(reply.document["metrics"]["cached_tokens"])


def test_a_guess_that_is_right_looks_like_one_that_is_wrong(shared: Stack) -> None:
    cached(shared, SECRET, USER)
    assert cached(shared, SECRET, USER) > 0, "its own caller is answered from the cache"
    cached(shared, "The door opens with 11111111.", ATTACKER)  # from here on its own words are cached
    wrong = cached(shared, "The door opens with 99999999.", ATTACKER)
    assert cached(shared, SECRET, ATTACKER) == wrong


def test_a_picture_that_another_key_has_sent_is_new_to_this_one(shared: Stack) -> None:
    """As new as one that nobody has sent: its own second time is what is fast."""
    path, seen = fields_of(1)  # a file that nobody has sent before
    _, unseen = fields_of(1)
    shared.post(path, seen, USER)
    of_seen, of_unseen = (shared.post(path, fields, ATTACKER).document for fields in (seen, unseen))
    assert of_seen["metrics"]["cached_tokens"] == of_unseen["metrics"]["cached_tokens"]
    assert of_seen["metrics"]["vision_time_ms"] > 0, "it was computed again"


@pytest.mark.attacks
def test_the_clock_does_not_tell_a_picture_that_another_key_has_sent(shared: Stack) -> None:
    """Pairs of one that the other key has sent and one that nobody has: which is slower is a coin's toss.

    Of 40 tosses 33 or more are heads, or tails, once in 20,000 times; a cache that is shared makes it 40.
    """
    slower, times = 0, list[float]()
    for turn in range(40):
        path, seen = fields_of(1)
        _, unseen = fields_of(1)
        shared.post(path, seen, USER)
        order = (seen, unseen) if turn % 2 else (unseen, seen)
        told = {
            id(fields): shared.post(path, fields, ATTACKER).document["metrics"]["ttft_ms"] for fields in order
        }
        times.append(told[id(seen)] - told[id(unseen)])
        slower += times[-1] > 0
    assert 8 <= slower <= 32, f"seen ones were slower {slower} times of 40, by {median(times):.1f} ms"
