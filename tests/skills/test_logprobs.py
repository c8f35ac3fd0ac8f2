"""Log probabilities: what an entry holds, and with which piece of a streamed text each entry comes."""

from typing import Any

import pytest
from fakes import FakeEngine
from goldens import golden_language
from hypothesis import given
from hypothesis import strategies as st

from kestrel_core.loop.sequence import Outcome
from kestrel_core.loop.step import Sample
from kestrel_core.protocol.messages import Chunk, Request, Settings
from kestrel_core.skills.text import QuerySkill, TextReply

MD3 = golden_language("md3")
EOS = 0
LETTERS = {letter: MD3.tokenizer.encode(letter) for letter in "ab \n中é"}  # the last two have several tokens


def reply_to(**settings: Any) -> TextReply:
    reply = QuerySkill().reply(Request("query", {"question": "?"}, None, Settings(**settings)), MD3)
    assert isinstance(reply, TextReply)
    return reply


def tokens(text: str) -> list[int]:
    return [token for letter in text for token in LETTERS[letter]]


def say(reply: TextReply, ids: list[int]) -> list[Outcome]:
    """Up to the end of the answer."""
    outcomes = []
    for token in ids:
        outcomes.append(reply.take(Sample(token, logprob=-0.5, top=((token, -0.5),))))
        if outcomes[-1].finish:
            break
    return outcomes


def bytes_of(entries: Any) -> bytes:
    return bytes(byte for entry in entries for byte in entry["bytes"])


def test_an_entry_has_the_token_its_bytes_and_the_likeliest_ones() -> None:
    reply = reply_to(logprobs=2)
    [a], [b] = LETTERS["a"], LETTERS["b"]
    reply.take(Sample(a, logprob=-0.5, top=((a, -0.5), (b, -1.5))))
    reply.take(Sample(EOS, logprob=-0.1, top=()))
    first = {"token_id": a, "token": "a", "bytes": [97], "logprob": -0.5}
    second = {"token_id": b, "token": "b", "bytes": [98], "logprob": -1.5}
    assert reply.output()["logprobs"] == [{**first, "top": [first, second]}]
    assert "logprobs" not in reply_to().output()


def test_a_part_of_a_character_has_its_bytes() -> None:
    reply = reply_to(logprobs=1)
    say(reply, [*tokens("中"), EOS])
    entries = reply.output()["logprobs"]
    assert len(entries) > 1 and bytes_of(entries) == "中".encode()
    assert entries[0]["token"] == "\ufffd"


def test_an_entry_comes_with_the_text_that_its_token_ends_in() -> None:
    reply = reply_to(logprobs=1)
    outcomes = say(reply, [*tokens("ab a中b"), EOS])
    told = [(outcome.text, bytes_of(outcome.logprobs).decode()) for outcome in outcomes if outcome.text]
    assert told == [("ab ", "ab "), ("a中", "a中")]
    assert (outcomes[-1].rest, bytes_of(outcomes[-1].logprobs)) == ("b", b"b")


def test_a_token_that_is_shown_in_part_is_not_told() -> None:
    [token] = MD3.tokenizer.encode(" the")  # what stands before a space is shown, and the rest held back
    reply = reply_to(logprobs=1)
    first, last = say(reply, [token, EOS])
    assert (first.text, first.logprobs) == (" ", ()) and bytes_of(last.logprobs) == b" the"


@given(
    st.text("ab \n中é", max_size=12),
    st.lists(st.text("ab ", min_size=1, max_size=3), max_size=2),
    st.integers(1, 30),
    st.sampled_from(("end", "cut")),
)
def test_the_entries_of_all_pieces_are_those_of_the_answer(
    text: str, stops: list[str], max_tokens: int, ending: str
) -> None:
    reply = reply_to(logprobs=1, stop=tuple(stops), max_tokens=max_tokens)
    outcomes = say(reply, [*tokens(text), EOS] if ending == "end" else tokens(text))
    if not outcomes or not outcomes[-1].finish:
        outcomes.append(reply.cut())
    shown, told = "", b""
    for outcome in outcomes:
        shown += outcome.text + outcome.rest
        told += bytes_of(outcome.logprobs)
        assert outcome.text or outcome.finish or not outcome.logprobs
        if not outcome.finish:
            assert shown.encode().startswith(told), "a token was told before its text was shown"
    assert [entry for outcome in outcomes for entry in outcome.logprobs] == reply.output()["logprobs"]


@pytest.mark.parametrize("ending", ["stop", "length", "cancelled"])
def test_a_stream_s_pieces_have_the_entries_of_its_document(ending: str) -> None:
    settings = {"logprobs": 2, "max_tokens": 200 if ending == "length" else 12, "temperature": 1, "seed": 3}
    engine = FakeEngine(max_context=40)
    heard = engine.ask(question="why?", settings=settings, stream=True)
    engine.step(6)
    if ending == "cancelled":
        engine.cancel(heard)
    engine.run_until_idle()
    chunks = [*(event for event in heard.events if isinstance(event, Chunk)), heard.finished.rest]
    told = [entry for chunk in chunks for entry in chunk.logprobs]
    assert told == heard.output["logprobs"] and len(told) >= 5


def test_nothing_is_told_that_was_not_asked_for() -> None:
    engine = FakeEngine()
    heard = engine.ask(question="why?", stream=True)
    engine.run_until_idle()
    assert not any(chunk.logprobs for chunk in heard.events if isinstance(chunk, Chunk))
    assert not heard.finished.rest.logprobs and "logprobs" not in heard.output
