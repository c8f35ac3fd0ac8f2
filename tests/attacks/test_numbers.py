"""Numbers and words at the edges of what can be: refused in a sentence, or answered as they mean."""

from typing import Any

import numpy as np
import pytest
from attacks.stack import Stack
from image_files import encode

from kestrel_tools.bench.attacks.neighbour import ASKED, answer_in, fields_of
from kestrel_tools.bench.attacks.pictures import talkative_fax
from kestrel_tools.bench.attacks.requests import picture

pytestmark = pytest.mark.triton

COUNT = next(number for number, (path, _, _) in enumerate(ASKED) if path == "/v1/query")


@pytest.mark.parametrize("temperature", [1e-45, 1e-40, 1.2e-38, 1e-30])
def test_a_temperature_next_to_nothing_is_greedy(shared: Stack, temperature: float) -> None:
    """Logits that are divided by it would overflow, and noise would be the answer."""
    path, fields = fields_of(COUNT)
    greedy = shared.post(path, fields)
    settings = fields["settings"] | {"temperature": temperature, "seed": 7}
    almost = shared.post(path, fields | {"settings": settings})
    assert (greedy.status, almost.status) == (200, 200)
    assert answer_in(almost) == answer_in(greedy)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_tokens": 2**32 + 5},
        {"max_tokens": 2**63},
        {"max_tokens": 1e300},
        {"top_k": 2**32 + 5},
        {"seed": 2**64},
        {"temperature": 1e39},
        {"logprobs": 2**32},
    ],
    ids=str,
)
def test_a_number_beyond_its_type_is_refused_and_not_cut(shared: Stack, settings: dict[str, Any]) -> None:
    reply = shared.post("/v1/query", {"question": "Why?", "settings": settings})
    assert reply.status == 400
    [name] = settings
    assert reply.document["error"]["message"].startswith(name.upper())


LONG = "x" * 100_000
CONTROL = "\x1b[31m\x07\r\n\u202e"


@pytest.mark.parametrize(
    "fields",
    [
        {"question": "?", "model": LONG},
        {"question": "?", "settings": {"adapter": "y" * 1000}},
        {"question": "?", "settings": {"temperature": LONG}},
        {"question": "?", LONG: 1},
        {"question": "?", "settings": {LONG: 1}},
        {"question": "?", "model": CONTROL},
        {"question": "?", "settings": {"adapter": CONTROL}},
        {"question": "?", CONTROL: 1},
        {"question": "?", "image_url": LONG},
        {"question": "?", "image_url": f"http://{CONTROL}/"},
    ],
    ids=lambda fields: str([str(value)[:20] for value in fields.items()][-1]),
)
def test_an_error_does_not_echo_what_is_long_or_moves_the_cursor(
    shared: Stack, fields: dict[str, Any]
) -> None:
    reply = shared.post("/v1/query", fields)
    message = reply.document["error"]["message"]
    assert 400 <= reply.status < 500
    assert len(message) < 400
    assert message.isprintable()


@pytest.mark.parametrize("values", [np.linspace(0, 1, 600), np.full(600, np.nan)], ids=["0 to 1", "NaN"])
def test_a_picture_of_floats_is_not_taken_for_black(shared: Stack, values: Any) -> None:
    file = encode(values.reshape(20, 30).astype(np.float32), ".tif", "b-w")
    reply = shared.post("/v1/query", picture(file))
    assert (reply.status, reply.document["error"]["code"]) == (400, "image_decode_failed")


def test_a_picture_whose_decoder_talks_does_not_fill_the_log(shared: Stack) -> None:
    before = shared.served.log.stat().st_size
    for _ in range(3):
        assert shared.post("/v1/query", picture(talkative_fax())).status == 400
    assert shared.served.log.stat().st_size - before < 20_000
