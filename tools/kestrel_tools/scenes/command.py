"""`kestrel eval scenes`: any checkpoint on freshly drawn scenes, through an engine or a server.

Pictures are made and asked about a few at a time, so a run of any length needs the memory of a few.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from random import Random
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import UnsupportedSkill
from kestrel_tools.bench.machine.versions import provenance
from kestrel_tools.bench.results import write_document
from kestrel_tools.progress import counted, loading
from kestrel_tools.things.atlas import FOLDER
from kestrel_tools.things.pictures import open_things

from . import asking
from .answers import SERVER_CALLERS, Answers, EngineAnswers, ServerAnswers
from .asking import Asked
from .compare import Way, engine_ways, server_ways
from .options import EvalOptions
from .pictures import Drawn, Pictures, open_pictures
from .record import recording
from .score import MEANINGS, Scores, grade
from .sheet import Card, Shown, write_sheet

AT_ONCE, AT_ONCE_OF_SERVER = 8, 2  # pictures; a server may take seconds for each
SHEET_CARDS = 24


@dataclass
class Evaluation:
    """What a run has found so far."""

    ways: list[Way]
    scores: Scores = field(default_factory=Scores)
    by_tiling: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    latencies_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # by skill
    cards: list[Card] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return all(row.met for row in self.scores.rows()) and not any(way.num_different for way in self.ways)


def eval_scenes(options: EvalOptions, config: RuntimeConfig, console: Console) -> bool:
    """Print the table; True when every target is met and every way gave the same answers."""
    pictures = pictures_of(options)
    with _asked(options, config, len(pictures), console) as (answers, ways):
        at_once = AT_ONCE if options.url is None else AT_ONCE_OF_SERVER
        found = evaluate(answers, ways, pictures, options.seed, console, options.world, at_once)
    document = _document(options, config, found, len(pictures))
    _print(document, found, console)
    write_document(options.report, document)
    if options.sheet is not None:
        write_sheet(options.sheet, found.cards)
    return found.passed


def pictures_of(options: EvalOptions) -> Pictures:
    if options.world == "shapes":
        return open_pictures(options.pictures, options.seed, options.num_scenes)
    return open_things(options.world, options.seed, options.num_scenes, options.atlas or FOLDER)


def evaluate(
    answers: Answers,
    ways: list[Way],
    pictures: Pictures,
    seed: int,
    console: Console,
    world: str = "shapes",
    at_once: int = AT_ONCE,
) -> Evaluation:
    found = Evaluation(ways, Scores(world))
    began = time.monotonic()
    painters = ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1))
    with painters, counted("pictures", len(pictures), console) as advance:
        for start in range(0, len(pictures), at_once):
            numbers = range(start, min(start + at_once, len(pictures)))
            _ask_about(answers, list(painters.map(pictures.__getitem__, numbers)), seed, found)
            advance(len(numbers))
            if start == 0 and len(pictures) > at_once:
                seconds = (time.monotonic() - began) / len(numbers) * len(pictures)
                console.print(f"about {_minutes(seconds)} for {len(pictures)} pictures", highlight=False)
    found.seconds = time.monotonic() - began
    return found


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _ask_about(answers: Answers, chunk: list[Drawn], seed: int, found: Evaluation) -> None:
    asked: list[tuple[Drawn, Asked]] = [
        (picture, one)
        for picture in chunk
        for one in picture.requests(Random(f"requests {seed} {picture.name}"))
    ]
    requests = [one.request(picture.data, picture.name) for picture, one in asked]
    rows = [
        (picture, one, request, answer)
        for (picture, one), request, answer in zip(asked, requests, answers(requests), strict=True)
        if not isinstance(answer.outcome, UnsupportedSkill)
    ]
    shown: dict[str, list[Shown]] = defaultdict(list)
    for picture, one, _, answer in rows:
        graded = grade(one, answer.outcome, picture)
        found.scores.add(one, graded, picture)
        found.by_tiling["{}x{}".format(*picture.tiling)].append(graded.right)
        found.latencies_s[one.skill].append(answer.latency_s)
        shown[picture.name].append(Shown(one, answer.outcome, graded))
    found.cards.extend(Card(picture, shown[picture.name]) for picture in chunk)
    del found.cards[SHEET_CARDS:]
    rng = Random(f"order {seed} {chunk[0].name}")
    for way in found.ways:
        way.compare([request for _, _, request, _ in rows], [answer for *_, answer in rows], rng)


@contextmanager
def _asked(
    options: EvalOptions, config: RuntimeConfig, num_pictures: int, console: Console
) -> Iterator[tuple[Answers, list[Way]]]:
    """Who is asked, and in which other ways."""
    if options.url is not None and options.compare:
        with server_ways(options.url) as asked:
            yield asked
    elif options.url is not None:
        with closing(ServerAnswers(options.url, options.concurrency or SERVER_CALLERS)) as server:
            yield server, []
    else:
        with loading(console) as progress:
            model = open_model(config, progress)
        if options.compare:
            with engine_ways(model, config) as asked:
                yield asked
            return
        with ExitStack() as opened:
            noted = None
            if options.record is not None:
                about = {  # the pictures are drawn from the first five
                    "world": options.world,
                    "seed": options.seed,
                    "num_pictures": num_pictures,
                    "folder": str(options.pictures) if options.pictures else None,
                    "atlas": str(options.atlas.absolute()) if options.atlas else None,
                    "dtype": str(model.network.text.wte.dtype).removeprefix("torch."),
                    "config": asdict(config),
                    **provenance(config.device),
                }
                vision = model.network.config.vision
                recorded = recording(options.record, about, asking.SETTINGS, vision, options.logprobs)
                noted = opened.enter_context(recorded)
            engine = assemble_engine(model, config, noted.skills if noted is not None else None)
            plain = EngineAnswers(engine, options.concurrency or config.max_batch_size)
            opened.enter_context(closing(plain))
            yield noted.through(plain) if noted is not None else plain, []


def _document(
    options: EvalOptions, config: RuntimeConfig, found: Evaluation, num_pictures: int
) -> dict[str, Any]:
    through = (
        {"server": options.url}
        if options.url
        else {"model": config.model_path or config.model, "device": config.device, "dtype": config.dtype}
    )
    device = config.device if options.url is None else "cpu"  # of a server nothing is known
    return {
        **through,
        **provenance(device),
        "pictures": str(options.pictures) if options.pictures else f"new, seed {options.seed}",
        "world": options.world,
        "num_pictures": num_pictures,
        "num_answers": found.scores.num_answers,
        "seconds": round(found.seconds, 1),
        "scores": [
            {"name": row.name, "score": round(row.value, 4), "of": row.num, "target": row.target}
            for row in found.scores.rows()
        ],
        "right_by_tiling": {
            name: {"right": round(sum(right) / len(right), 4), "of": len(right)}
            for name, right in sorted(found.by_tiling.items())
        },
        "median_latency_ms": {
            skill: round(1000 * median(latencies), 1) for skill, latencies in found.latencies_s.items()
        },
        "ways": [
            {
                "way": way.name,
                "compared": way.num_compared,
                "different": way.num_different,
                "happened": way.happened(),
                "differences": way.different,
            }
            for way in found.ways
        ],
        "wrong": {kind: some for kind, some in found.scores.wrong.items() if some},
    }


def _print(document: dict[str, Any], found: Evaluation, console: Console) -> None:
    about = (
        f"{document['num_pictures']} pictures ({document['pictures']}), {document['num_answers']:,} answers"
    )
    table = Table(title=f"{about} in {document['seconds']:,.0f} s", title_justify="left")
    for name in ("what", "score", "of", "target", ""):
        table.add_column(name, justify="right" if name in ("score", "of", "target") else "left")
    for row in found.scores.rows():
        target = "" if row.target is None else f"{row.target:.2f}"
        colour = "" if row.target is None else "green" if row.met else "bold red"
        note = MEANINGS.get(row.name, "")
        table.add_row(row.name, f"{row.value:.4f}", f"{row.num:,}", target, note, style=colour)
    console.print(table)
    for kind, some in document["wrong"].items():
        for wrong in some:
            said = "".join(letter if letter.isprintable() else "\ufffd" for letter in wrong["said"])
            asked = f"{kind}: picture {wrong['picture']}, {wrong['asked']}"
            console.print(f"{asked} -> {said} (true: {wrong['true']})", markup=False, highlight=False)
    for way in document["ways"]:
        told = f"{way['way']}: {way['different']} of {way['compared']:,} answers differ from the plain ones"
        console.print(f"{told} ({way['happened']})", markup=False, highlight=False)
        for difference in way["differences"]:
            console.print(f"  {difference}", markup=False, highlight=False)
