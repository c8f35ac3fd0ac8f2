"""Stop strings: which text they leave, and with which token they end the answer."""

import sys
from codecs import utf_8_decode
from typing import Any

import pytest
from goldens import golden_language
from hypothesis import example, given
from hypothesis import strategies as st

from kestrel_core.intake.tokenizer import TextStream, Tokenizer
from kestrel_core.loop.sequence import Outcome, Reply, cut_short
from kestrel_core.loop.step import Sample
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.skills.spec import Language
from kestrel_core.skills.text import QuerySkill, StopStrings

MD3 = golden_language("md3")
BYTES = Language(MD3.config, Tokenizer.of_bytes(MD3.config))
LANGUAGES = {"md2": golden_language("md2"), "md3": MD3, "bytes": BYTES}
EOS, COORD = 0, 5


def reply_to(language: Language = MD3, **settings: Any) -> Reply:
    return QuerySkill().reply(Request("query", {"question": "?"}, settings=Settings(**settings)), language)


def letters(text: str, language: Language = MD3) -> list[int]:
    """Token by token, each a single letter's, so that words cross token borders."""
    return [i for letter in text for i in language.tokenizer.encode(letter)]


def say(reply: Reply, tokens: list[int]) -> list[Outcome]:
    return [reply.take(Sample(token)) for token in tokens]


def test_a_stop_string_across_tokens_ends_the_answer_and_is_cut_off() -> None:
    reply = reply_to(stop=("red cir",))
    said = ""
    for token in letters("two red circles and more"):
        outcome = reply.take(Sample(token))
        said += outcome.text + outcome.rest
        if outcome.finish:
            break
    assert outcome.finish == "stop" and said == "two " and reply.output() == {"answer": "two "}


def test_text_held_back_for_a_stop_string_is_released_when_it_does_not_come() -> None:
    reply = reply_to(stop=("one two three", "zzz"))
    outcomes = say(reply, letters("one two six "))
    assert [outcome.text for outcome in outcomes if outcome.text] == ["one two six "]
    reply = reply_to(stop=("one two three",))
    outcomes = say(reply, [*letters("one two "), EOS])
    assert [outcome.text for outcome in outcomes if outcome.text] == []
    assert outcomes[-1] == Outcome("", "one two ", finish="stop")


def test_a_stop_string_at_the_limit_counts_as_a_stop() -> None:
    reply = reply_to(stop=("cd",), max_tokens=5)
    outcomes = say(reply, letters("ab cd"))
    assert outcomes[-1].finish == "stop" and reply.output() == {"answer": "ab "}


def test_a_stop_string_counts_as_a_stop_where_the_context_ends_too() -> None:
    """It was not settled: the other one, which begins before it, could still have come."""
    for settings in ({"max_tokens": 6}, {}):
        reply = reply_to(stop=("###", "yes### and no"), **settings)
        outcome = say(reply, letters("yes###"))[-1]
        outcome = outcome if outcome.finish else cut_short(outcome, reply)
        assert (outcome.finish, reply.output()) == ("stop", {"answer": "yes"})
    reply = reply_to(stop=("###",))
    assert cut_short(say(reply, letters("yes##"))[-1], reply).finish == "length"


def say_until_the_end(reply: Reply, tokens: list[int]) -> tuple[list[Outcome], str]:
    """What came of the tokens up to the one that ended the answer, and all text that was shown."""
    outcomes: list[Outcome] = []
    for token in tokens:
        outcomes.append(reply.take(Sample(token)))
        if outcomes[-1].finish:
            break
    return outcomes, "".join(outcome.text + outcome.rest for outcome in outcomes)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_a_stop_string_ends_the_answer_in_the_middle_of_a_word(language: Language) -> None:
    reply = reply_to(language, stop=("###", "never"))
    before, behind = letters('see {"a":1}###', language), letters("and,so,on,without,spaces", language)
    outcomes, shown = say_until_the_end(reply, before + behind)
    assert len(outcomes) == len(before) and outcomes[-1].finish == "stop"
    assert shown == 'see {"a":1}' and reply.output() == {"answer": shown}


def test_a_stop_string_waits_for_one_that_begins_before_it_and_may_still_come() -> None:
    for said, answer, num_tokens in (("xabcdy", "x", 5), ("xabczy", "xa", 5), ("xabc d", "xa", 5)):
        reply = reply_to(stop=("bc", "abcd"))
        outcomes, _ = say_until_the_end(reply, letters(said))
        assert (reply.output(), len(outcomes)) == ({"answer": answer}, num_tokens)


@pytest.mark.parametrize("pieces", [["zq y"] + ["ab "] * 300, ["zqy"] + ["ab"] * 450])
def test_long_stop_strings_cost_a_token_little(pieces: list[str]) -> None:
    """A thousand comparisons for each of them kept all answers of a step waiting for milliseconds."""
    others = tuple(chr(ord("A") + index) * 1000 for index in range(14))
    watch = StopStrings((*others, "".join(pieces) + "!" * 20, *(["y"] if " " not in pieces[0] else [])))
    num_calls, coming = 0, ""

    def count(_: object, event: str, __: object) -> None:
        nonlocal num_calls
        num_calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for piece in pieces:
            coming += piece
            if coming.endswith(" "):
                watch.feed(coming)
                coming = ""
            watch.will_be_met(coming)
    finally:
        sys.setprofile(before)
    assert not watch.met and num_calls < 200 * len(pieces)


def answer_by_words(language: Language, tokens: list[int], stops: tuple[str, ...]) -> tuple[str, int]:
    """The text of an answer whose stop strings are looked for when a word is whole, and its tokens."""
    stream, watch, said = TextStream(language.tokenizer), StopStrings(stops), ""
    for index, token in enumerate(tokens):
        said += watch.feed(stream.feed(token))
        if watch.met:
            return said, index + 1
    return said + watch.feed(stream.finish()) + watch.finish(), len(tokens)


def is_settled(language: Language, tokens: list[int], stops: tuple[str, ...]) -> bool:
    """Whether these tokens say a stop string, and none that begins before it is begun at their end."""
    text, _ = utf_8_decode(b"".join(map(language.tokenizer.bytes_of, tokens)), "replace", False)
    ends = [at for at in map(text.find, stops) if at >= 0]
    return bool(ends) and not any(stop.startswith(text[at:]) for at in range(min(ends)) for stop in stops)


def treacherous_tokens(language: Language) -> list[int]:
    """Tokens of letters, of parts of them, of several and of none."""
    tokenizer = language.tokenizer
    of_a_byte = {tokenizer.bytes_of(i): i for i in range(language.config.text.vocab_size)}
    parts = [of_a_byte[bytes([byte])] for byte in "ab# \né中".encode() + b"\x80\xff"]
    words = [i for word in (" a", "ab", "ba", "##", "。", " the") for i in tokenizer.encode(word)]
    return [*parts, *words, COORD]


SPOKEN = st.one_of(
    st.tuples(st.just(name), st.lists(st.sampled_from(treacherous_tokens(language)), max_size=20))
    for name, language in LANGUAGES.items()
)


@given(SPOKEN, st.lists(st.text("ab# \né中\ufffd", min_size=1, max_size=4), min_size=1, max_size=4))
@example(("md3", letters("babab#")), ["ab", "abab#", "b#"])
def test_stop_strings_end_an_answer_sooner_than_its_words_and_leave_the_same_text(
    said: tuple[str, list[int]], stops: list[str]
) -> None:
    (name, tokens), several = said, tuple(stops)
    language = LANGUAGES[name]
    reply = reply_to(language, stop=several)
    outcomes, shown = say_until_the_end(reply, [*tokens, EOS])
    answer, num_tokens = answer_by_words(language, tokens, several)
    assert reply.output() == {"answer": answer} and shown == answer
    taken = tokens[: len(outcomes)]
    assert len(taken) <= num_tokens
    assert not is_settled(language, taken[:-1], several), "it could have ended sooner"
    assert is_settled(language, taken, several) or len(taken) == num_tokens


@given(
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.text("ab", max_size=3), max_size=12),
)
def test_stop_strings_show_all_that_precedes_the_first_one(stops: list[str], pieces: list[str]) -> None:
    watch, shown = StopStrings(tuple(stops)), ""
    for index, piece in enumerate(pieces):
        shown += watch.feed(piece)
        told = "".join(pieces[: index + 1])
        assert watch.met == any(stop in told for stop in stops)
        assert told.startswith(shown) and not any(stop in shown for stop in stops)
        if watch.met:
            break
        assert len(told) - len(shown) < max(map(len, stops)), "no more is held back than a stop could need"
    met = watch.met
    shown += watch.finish()
    if not met:
        assert shown == "".join(pieces)
    assert watch.feed("") == ""
