"""How answers to lines are scored, and what the table says of it."""

from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from lines_to_learn import BOX
from rich.console import Console

from kestrel_core.protocol.errors import EngineFailed, KestrelError, UnknownAdapter
from kestrel_core.protocol.messages import Request
from kestrel_tools.finetune.lines import Asked
from kestrel_tools.finetune.scoring import document, outcomes, print_scores, score, words_in_common
from kestrel_tools.scenes.answers import Answer

WANTED: dict[str, Any] = {
    "query": "Deux  cercles",
    "caption": "a red circle and a star",
    "detect": [BOX],
    "point": [{"x": 0.5, "y": 0.5}],
}
LINES = [
    Asked(n, Request(skill, {"object": "it"}), wanted) for n, (skill, wanted) in enumerate(WANTED.items(), 1)
]
RIGHT: list[dict[str, Any]] = [
    {"answer": " deux cercles"},
    {"caption": "A red circle and a star"},
    {"objects": [BOX]},
    {"points": [{"x": 0.53, "y": 0.46}]},
]
WRONG: list[dict[str, Any]] = [
    {"answer": "two circles"},
    {"caption": "a star"},
    {"objects": [{"x_min": 0.7, "y_min": 0.7, "x_max": 0.9, "y_max": 0.9}]},
    {"points": [{"x": 0.1, "y": 0.5}]},
]


def test_right_answers_score_1() -> None:
    scores = {name: value for name, (value, _) in score(LINES, RIGHT).items()}
    assert scores.pop("point distance") == pytest.approx(0.05)
    assert set(scores.values()) == {1.0}
    assert list(scores) == [
        "query exact",
        "caption exact",
        "caption F1",
        "detect F1",
        "detect IoU",
        "point F1",
    ]


def test_wrong_answers_and_errors_score_0() -> None:
    scores = score(LINES, WRONG)
    assert scores.pop("caption F1")[0] == pytest.approx(0.5)  # 2 of 2 and 6 words
    assert {value for value, _ in scores.values()} == {0.0}
    failed = score(LINES, [EngineFailed("broken")] * 4)
    assert {value for value, _ in failed.values()} == {0.0}


def test_finding_nothing_where_nothing_is_wanted_is_right() -> None:
    nothing = [Asked(1, Request("detect", {"object": "it"}), [])]
    assert score(nothing, [{"objects": []}])["detect F1"] == (1.0, 1)
    assert score(nothing, [{"objects": [BOX]}])["detect F1"] == (0.0, 1)


def test_every_wanted_place_is_hit_once() -> None:
    twice = [{"points": [{"x": 0.5, "y": 0.5}, {"x": 0.5, "y": 0.51}]}]
    assert score(LINES[3:], twice)["point F1"][0] == pytest.approx(2 / 3)


def test_words_count_as_often_as_they_stand_there() -> None:
    assert words_in_common("a a b", "A b b") == pytest.approx(2 / 3)
    assert words_in_common("", "") == 0.0


def asking(answers: Sequence[dict[str, Any] | KestrelError]) -> Any:
    return lambda requests: [Answer(outcome, 0.0) for outcome in answers]


def test_an_adapter_that_nobody_knows_is_no_score() -> None:
    with pytest.raises(UnknownAdapter):
        outcomes(asking([UnknownAdapter("there is none")]), LINES[:1], "none", Console(quiet=True))


def test_the_table_shows_both_columns_and_a_wrong_answer() -> None:
    found = document(LINES, {"without": WRONG, "with": [*RIGHT[:3], WRONG[3]]})
    assert found["scores"][0] == {"name": "query exact", "of": 1, "without": 0.0, "with": 1.0}
    told = StringIO()
    print_scores(found, Console(file=told, width=120))
    assert "without" in told.getvalue() and "line 4, point it: 1 found (wanted: 1 found)" in told.getvalue()
