"""How fuzzed tests draw: a number of examples decides how long they take, and no clock decides anything."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def draw(number: int, check: Callable[..., Any], *kinds: st.SearchStrategy[Any]) -> None:
    """Call `check` with so many drawn examples, the same each time."""

    def one(values: tuple[Any, ...]) -> None:
        check(*values)

    given(st.tuples(*kinds))(settings(max_examples=number, suppress_health_check=list(HealthCheck))(one))()
