"""What one request can do to another: nothing."""

from typing import Any

import pytest
from fakes import Heard
from poisoned import UNKNOWN, UNSOUND, alone, both, make_engine, same

from kestrel_core.protocol.errors import (
    BadImage,
    EngineFailed,
    KestrelError,
)
from kestrel_core.protocol.messages import Event, Request, parse_settings


@both
@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"skill": "poisoned", "where": "reply"}, EngineFailed, "could not begin its reply"),
        ({"skill": "poisoned", "where": "readout"}, EngineFailed, "could not read the model's output"),
        ({"skill": "poisoned", "where": "take"}, EngineFailed, "could not read the model's output"),
        ({"skill": "poisoned", "where": "cut"}, EngineFailed, "could not read the model's output"),
        ({"skill": "poisoned", "where": "output"}, EngineFailed, "could not give its result"),
        ({"skill": "poisoned", "where": "no readout"}, EngineFailed, "could not read the model's output"),
        ({"skill": "poisoned", "where": "no text"}, EngineFailed, "could not give its result"),
        ({"skill": "caption", "image": b"damaged"}, BadImage, "the image is damaged"),
        ({"skill": "caption", "image": b"unheard of"}, EngineFailed, "could not be prepared"),
        (
            {"skill": "caption", "image": b"late"},
            EngineFailed,
            "computing this request failed (RuntimeError)",
        ),
        ({"skill": "tokens", "tokens": [1, UNKNOWN]}, EngineFailed, "computing this request failed"),
        ({"skill": "tokens", "tokens": [1, UNSOUND]}, EngineFailed, "output is not a number"),
    ],
)
def test_a_poisoned_request_fails_alone(
    overlaps: bool,
    asked: dict[str, Any],
    error: type[KestrelError],
    message: str,
) -> None:
    engine = make_engine(overlaps=overlaps, max_running=3)

    def ask_others() -> list[Heard]:
        return [
            engine.ask(question="before", stream=True, settings={"max_tokens": 12}),
            engine.ask("detect", b"cat", object="tail"),
        ]

    others = ask_others()
    engine.workers.run()
    engine.step(3)
    poisoned = engine.ask(**asked)
    others += ask_others()
    engine.run_until_idle()
    assert type(poisoned.error) is error and message in str(poisoned.error)
    assert all(same(other, alone(other.request)) for other in others)
    assert engine.loop.healthy
    engine.check_idle()


@pytest.mark.parametrize("where", ["prompt", "reply", "take", "output"])
def test_what_a_skill_raises_is_logged_and_not_told(where: str, caplog: pytest.LogCaptureFixture) -> None:
    engine = make_engine()
    heard = engine.ask("poisoned", where=where)
    engine.run_until_idle()
    assert "poisoned.py" not in str(heard.error)
    assert "raise ZeroDivisionError" in caplog.text


def test_a_skill_that_cannot_be_cut_fails_when_it_is_cancelled() -> None:
    engine = make_engine()
    heard = engine.ask("poisoned", where="cut")
    engine.step(3)
    engine.cancel(heard)
    engine.step()
    assert isinstance(heard.error, EngineFailed)
    engine.check_idle()


def test_a_listener_that_raises_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    engine = make_engine()

    def listen(event: Event) -> None:
        raise ZeroDivisionError

    request = Request(
        "query", {"question": "what?"}, settings=parse_settings({"temperature": 0}), stream=True
    )
    engine.loop.submit(request, listen)
    other = engine.ask(question="other")
    engine.run_until_idle()
    assert "the sink of request" in caplog.text
    assert same(other, alone(other.request))
    engine.check_idle()
