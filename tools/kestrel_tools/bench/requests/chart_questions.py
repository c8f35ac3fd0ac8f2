"""The ChartQA-like mix: which chart and which question the n-th request brings. Deterministic, endless.

Of every three charts two are asked about twice and one once: five questions over three pictures. They come in
the order A B A C B, so a second question arrives two requests after the first: late enough that others lie
between, as in a real mix, and so early that with many callers the picture may still be in the works. Sizes go
round in fours and the pattern in threes, so within twelve charts each size has each place in it once. No
chart comes back after its second question: whatever is found in a cache was put there by the mix itself.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

from kestrel_core.config import RuntimeConfig
from kestrel_tools.bench.requests.charts import SIZES, draw_chart

PATTERN = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1))  # which of three charts, and its first or second question
CHARTS_A_TURN = 3
ROUND = len(SIZES) * len(PATTERN)  # requests after which sizes and pattern repeat together

# No two begin alike, so a second question shares only the picture with the first.
OF_WORDS = (
    "What is the difference between the highest and the lowest bar in this chart?",
    "How many of the years shown here have a value above the average of all?",
    "Which year comes right after the one with the largest increase in the series?",
    "Add the values of the first two bars: is the sum above the last one?",
    "By how much did the second series grow between the first and last year?",
)
OF_BYTES = ("How much in 07?", "Which is least?", "Sum of 04 & 09?", "Is 05 above 12?", "Tallest of all?")


class Question(NamedTuple):
    chart: int
    words: int  # which of the questions
    image: bytes = b""
    text: str = ""


def plan(index: int) -> Question:
    """What request `index` asks. Its chart is not drawn yet."""
    turn, place = divmod(index, len(PATTERN))
    chart, second = PATTERN[place]
    number = turn * CHARTS_A_TURN + chart
    return Question(number, (number + second) % len(OF_WORDS))


class ChartQuestions:
    """An iterator over the mix that draws charts ahead, many at a time, and keeps them while they are due."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts = texts
        self._next = 0
        self._drawn: dict[int, bytes] = {}
        self._num_drawn = 0

    def ahead(self, count: int) -> Iterator[Question]:
        """The next `count` requests, their charts drawn now so that nobody waits for one later."""
        wanted = [plan(index) for index in range(self._next, self._next + count)]
        self._next += count
        last = max((question.chart for question in wanted), default=-1)
        fresh = range(self._num_drawn, last + 1)
        with ThreadPoolExecutor() as threads:
            self._drawn |= dict(zip(fresh, threads.map(draw_chart, fresh), strict=True))
        self._num_drawn = max(self._num_drawn, last + 1)
        questions = [q._replace(image=self._drawn[q.chart], text=self._texts[q.words]) for q in wanted]
        # The last charts may be asked about again in the next batch; earlier ones are not needed any more.
        self._drawn = {number: png for number, png in self._drawn.items() if number > last - CHARTS_A_TURN}
        return islice(questions, count)


def question_texts(config: RuntimeConfig) -> tuple[str, ...]:
    """About 15 tokens each, whether of a real vocabulary or of the single bytes used with random weights."""
    bytes_only = config.weights == "random" and not config.tokenizer_path and not config.model_path
    return OF_BYTES if bytes_only else OF_WORDS
