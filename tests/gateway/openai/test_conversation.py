"""Several turns as one question about one picture."""

import pytest

from kestrel_core.protocol.errors import InvalidRequest, TooLarge
from kestrel_gateway.openai.conversation import Conversation, Picture, Role, Turn, read_conversation


def turn(role: Role, text: str, *pictures: str) -> Turn:
    return Turn(role, (text,), tuple(Picture(one, f"at {one}") for one in pictures), f"{role}'s")


def read(*turns: Turn) -> Conversation:
    return read_conversation(turns, "messages")


def test_a_single_text_is_asked_as_it_is() -> None:
    assert read(turn("user", " What?\n")).question == " What?\n"


def test_the_system_speaks_first_and_earlier_turns_are_lines() -> None:
    made = read(
        turn("system", "Be brief."),
        turn("user", "What is this?"),
        turn("assistant", "A dog."),
        turn("developer", "Be kind."),
        turn("user", "Which breed?"),
    )
    assert made.question == "Be brief.\nBe kind.\n\nUser: What is this?\nAssistant: A dog.\n\nWhich breed?"
    assert (made.last, made.param) == ("Which breed?", "user's")


def test_texts_of_one_message_are_lines() -> None:
    assert read(Turn("user", ("What", "is this?"), (), "")).question == "What\nis this?"


def test_a_picture_stays_in_view_in_later_turns() -> None:
    made = read(turn("user", "What?", "dog"), turn("assistant", "A dog."), turn("user", "Sure?"))
    assert made.picture == Picture("dog", "at dog")


@pytest.mark.parametrize("pictures", [("dog", "cat"), ("dog", "cat", "owl")])
def test_all_pictures_but_the_last_are_refused_by_name(pictures: tuple[str, ...]) -> None:
    first, *others = pictures
    with pytest.raises(InvalidRequest, match=f"at dog is a picture, and so is at {pictures[-1]}") as raised:
        read(turn("user", "What?", first), turn("user", "And this?", *others))
    assert raised.value.param == "at dog"  # type: ignore[attr-defined]


@pytest.mark.parametrize("role", ["system", "assistant"])
def test_only_the_user_shows_pictures(role: Role) -> None:
    with pytest.raises(InvalidRequest, match=f"at dog is a picture of the {role}"):
        read(turn(role, "Look.", "dog"), turn("user", "What?"))


@pytest.mark.parametrize("turns", [[turn("system", "Hi.")], [turn("user", "Hi."), turn("assistant", "I")]])
def test_the_user_has_the_last_word(turns: list[Turn]) -> None:
    with pytest.raises(InvalidRequest, match="messages must end with what the user says"):
        read(*turns)


def test_a_picture_without_a_text_asks_nothing() -> None:
    with pytest.raises(InvalidRequest, match="user's has no text"):
        read(Turn("user", (), (Picture("dog", "at dog"),), "user's"))


def test_all_turns_together_are_limited_like_a_question() -> None:
    with pytest.raises(TooLarge, match="65,536 bytes") as raised:
        read(turn("user", "a" * 40_000), turn("user", "b" * 40_000))
    assert raised.value.param == "messages"  # type: ignore[attr-defined]
