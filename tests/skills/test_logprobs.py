"""Log probabilities: what an entry holds, with which piece of a streamed text it comes, and which is last."""

from codecs import register_error
from itertools import accumulate
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
EOS, COORD = 0, 5
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


def test_a_stop_string_and_what_was_sampled_behind_it_have_no_entries() -> None:
    [the] = MD3.tokenizer.encode("the")
    reply = reply_to(logprobs=1, stop=("the",))
    outcomes = say(reply, [*tokens("ab b"), COORD, the, *tokens("ab a")])
    assert reply.output()["answer"] == "ab b"
    assert bytes_of(reply.output()["logprobs"]) == b"ab b" and len(reply.output()["logprobs"]) == 4
    assert [bytes_of(outcome.logprobs) for outcome in outcomes if outcome.logprobs] == [b"ab ", b"b"]
    reply = reply_to(logprobs=1, stop=("the",))
    assert say(reply, [the])[-1].logprobs == () and reply.output()["logprobs"] == []


def test_a_token_that_begins_in_the_answer_and_ends_in_the_stop_string_is_told() -> None:
    [the] = MD3.tokenizer.encode(" the")
    for stop, told in ((" ", b"a"), ("h", b"a the"), ("ea", b"a the")):
        reply = reply_to(logprobs=1, stop=(stop,))
        say(reply, [*tokens("a"), the, *tokens("a")])
        assert bytes_of(reply.output()["logprobs"]) == told


def by_its_length(broken: UnicodeError) -> tuple[str, int]:
    assert isinstance(broken, UnicodeDecodeError)
    return chr(0xE000 + broken.end - broken.start), broken.end


register_error("by its length", by_its_length)


def num_bytes(said: bytes, num_letters: int) -> int:
    """Of the first letters of what was said; a broken one has one to three."""
    letters = said.decode("utf-8", "by its length")[:num_letters]
    return sum(ord(it) - 0xE000 if "\ue000" < it < "\ue004" else len(it.encode()) for it in letters)


OF_BYTES = {MD3.tokenizer.bytes_of(i): i for i in range(512)}
PARTS = [OF_BYTES[bytes([byte])] for byte in "ab# \né中".encode() + b"\x80\xa0\xe0\xff"]
WORDS = [OF_BYTES[word] for word in (b" the", b" a", b"at", b"a\xc3", b"\xe4\xb8", b"\xb2\xe7", b"\xa7ade")]


@given(
    st.lists(st.sampled_from([*PARTS, *WORDS, COORD]), max_size=15),
    st.lists(st.text("abt# \né中\ufffd", min_size=1, max_size=3), min_size=1, max_size=3),
)
def test_the_entries_are_those_of_tokens_that_begin_before_the_answer_ends(
    ids: list[int], stops: list[str]
) -> None:
    reply = reply_to(logprobs=1, stop=tuple(stops))
    outcomes = say(reply, [*ids, EOS])
    sampled = ids[: len(outcomes)]
    data = [MD3.tokenizer.bytes_of(token) for token in sampled]
    said, starts = b"".join(data), accumulate(map(len, data), initial=0)
    has_stopped = any(stop in said.decode("utf-8", "replace") for stop in stops)
    end = num_bytes(said, len(reply.output()["answer"])) if has_stopped else len(said) + 1
    wanted = [token for token, start in zip(sampled, starts, strict=False) if start < end and token != COORD]
    entries = reply.output()["logprobs"]
    assert [entry["token_id"] for entry in entries if entry["bytes"]] == wanted
    assert [entry for outcome in outcomes for entry in outcome.logprobs] == entries


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
