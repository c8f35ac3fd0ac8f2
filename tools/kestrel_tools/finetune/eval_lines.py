"""`kestrel eval lines`: an engine or a server on a data file's lines, without and with an adapter."""

from dataclasses import replace
from pathlib import Path
from random import Random

from rich.console import Console

from kestrel_core.config import RuntimeConfig
from kestrel_core.skills.registry import builtin_skills
from kestrel_tools.bench.results import write_document
from kestrel_tools.scenes.answers import answering

from . import scoring
from .lines import read_asked
from .options import EvalLinesOptions


def eval_lines(options: EvalLinesOptions, config: RuntimeConfig, console: Console) -> None:
    lines = read_asked(options.data, builtin_skills())
    if options.lines is not None and options.lines < len(lines):
        lines = sorted(Random(options.seed).sample(lines, options.lines), key=lambda line: line.number)
    name = options.adapter
    if options.url is None and name is not None and Path(name).exists():
        place = Path(name).resolve()
        config, name = replace(config, adapters=str(place.parent)), place.name
    with answering(options.url, config, console) as answers:
        columns = {"without": scoring.outcomes(answers, lines, None, console)}
        if name is not None:
            columns["with"] = scoring.outcomes(answers, lines, name, console)
    found = scoring.document(lines, columns)
    scoring.print_scores(found, console)
    write_document(options.report, found)
