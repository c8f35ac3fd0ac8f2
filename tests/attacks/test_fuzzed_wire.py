"""The wire in both directions: tensors of every shape and type in, answers of any content out."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from attacks.fuzzing import draw
from hypothesis import strategies as st

from kestrel_core.protocol.errors import KestrelError, error_from_text
from kestrel_core.protocol.fields import BY_NAME, PARAMETERS, Field
from kestrel_core.protocol.wire import decode_request, decode_response

FEW, MANY = 60, 10_000
FLOATS = st.lists(st.floats(width=32), max_size=3)
STRINGS = st.lists(st.binary(max_size=40) | st.text(max_size=20).map(str.encode), max_size=20)
WHOLE = {"INT32": 31, "INT64": 63}


def array_of(field: Field) -> st.SearchStrategy[Any]:
    """As Triton lets it through: the type and the number of dimensions are right, all else may be wrong."""
    if field.type == "STRING":
        return STRINGS.map(lambda values: np.array(values, np.object_))
    if field.dims == (-1, -1):
        rows = st.integers(0, 5).flatmap(
            lambda n: st.lists(st.lists(st.floats(width=32), min_size=n, max_size=n), max_size=4)
        )
        return rows.map(lambda values: np.array(values, np.float32).reshape(len(values), -1 if values else 0))
    if field.type == "FP32":
        return FLOATS.map(lambda values: np.array(values, np.float32))
    if field.type == "BOOL":
        return st.lists(st.booleans(), max_size=3).map(lambda values: np.array(values, np.bool_))
    bits = WHOLE[field.type]
    numbers = st.lists(st.integers(-(2**bits), 2**bits - 1), max_size=3)
    return numbers.map(lambda values: np.array(values, np.int32 if bits == 31 else np.int64))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
NAMED = st.fixed_dictionaries({}, optional={name: array_of(field) for name, field in BY_NAME.items()})
PARAMETER = st.dictionaries(st.sampled_from((*PARAMETERS, "x", "MAX_TOKENS")), JSON, max_size=3)


def read(inputs: dict[str, Any], parameters: dict[str, Any]) -> None:
    try:
        request = decode_request({"SKILL": np.array([b"query"], object)} | inputs, "", 0, parameters)
    except KestrelError as error:
        assert str(error).isprintable() and len(str(error)) < 600
    else:
        assert isinstance(request.skill, str)


def read_answer(text: str) -> None:
    with suppress(KeyError, TypeError, ValueError, AttributeError):  # as it promises
        decode_response(text)


def read_both(number: int) -> None:
    draw(number, read, NAMED, PARAMETER)
    draw(number, read_answer, st.text(max_size=60) | JSON.map(json.dumps))
    draw(number, error_from_text, st.text(max_size=60))


def test_whatever_comes_over_the_wire_is_read_or_an_error_of_ours() -> None:
    read_both(FEW)


@pytest.mark.attacks
def test_so_are_many_thousands() -> None:
    read_both(MANY)
