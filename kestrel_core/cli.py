"""The `kestrel` command. Each subcommand calls one function; heavy imports wait until one is chosen."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.config import RuntimeConfig
from kestrel_core.errors import KestrelError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # which has no public name

DEVICE_HALF = ("runtime", "flashinfer", "cuda_graphs", "compile")  # what may differ and must not show
SETTINGS: tuple[tuple[str, type, str], ...] = (
    ("temperature", float, "0 is always the likeliest token"),
    ("top-p", float, "choose among the likeliest tokens that make up this share"),
    ("max-tokens", int, "of an answer"),
    ("max-objects", int, "to detect or point at"),
    ("seed", int, "the same one gives the same answer again"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console(stderr=getattr(options, "json", False), soft_wrap=False)
    try:
        return int(options.run(options, console))
    except KestrelError as error:
        print(f"kestrel: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kestrel", description="Serve and check Moondream models.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_schedule(commands)
    _add_parity(commands)
    _add_bench(commands)
    _add_eval(commands)
    return parser


def _add_serve(commands: "Commands") -> None:
    serve = commands.add_parser(
        "serve",
        help="start Triton on the model repository and keep it running",
        description="Checks that a server can run here, starts it, waits until it answers, and starts it "
        "again should it die. What it serves is said by KESTREL_* variables or by the model's parameters in "
        "config.pbtxt. SIGTERM or Ctrl-C lets requests under way finish. Exit code 0: everybody was "
        "answered, 1: not so, 2: it cannot be started as asked.",
    )
    serve.add_argument("--demo", action="store_true", help="serve the bundled model, on the CPU")
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        serve.add_argument(
            f"--{name}-port", type=int, default=port, metavar="PORT", help="(default: %(default)s)"
        )
    serve.add_argument(
        "--model-repository", type=Path, metavar="DIR", help="default: the one that came with this package"
    )
    serve.add_argument(
        "--exit-timeout",
        type=int,
        default=30,
        metavar="SECONDS",
        help="that requests under way have at the end (default: %(default)s)",
    )
    serve.add_argument("flags", nargs="*", metavar="-- TRITON_FLAG", help="passed on to tritonserver")
    serve.set_defaults(run=_serve)


def _serve(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.commands.serve import REPOSITORY, ServeOptions, serve

    chosen = ServeOptions(
        options.http_port,
        options.grpc_port,
        options.metrics_port,
        options.model_repository or REPOSITORY,
        options.exit_timeout,
        options.demo,
        options.flags,
    )
    return serve(chosen, console)


def _add_schedule(commands: "Commands") -> None:
    schedule = commands.add_parser(
        "schedule",
        help="answer prompts from the shell, without a server",
        description="Starts an engine, asks all prompts at once and prints the answers. Every option of the "
        "engine also has a KESTREL_* variable. Exit code 0: all were answered, 1: some were not, 2: the "
        "engine could not be started as asked.",
    )
    schedule.add_argument("prompts", nargs="*", metavar="PROMPT", help="a question, or an object to look for")
    schedule.add_argument(
        "--image", action="append", default=[], metavar="FILE", help="one for all prompts, or one for each"
    )
    schedule.add_argument(
        "--skill",
        default="query",
        choices=("query", "caption", "detect", "point"),
        help="what to ask for (default: %(default)s)",
    )
    schedule.add_argument("--stream", action="store_true", help="show answers while they are given")
    schedule.add_argument("--reasoning", action="store_true", help="query: think first")
    schedule.add_argument("--length", choices=("short", "normal", "long"), help="caption: how long")
    schedule.add_argument("--repeat", type=int, default=1, metavar="N", help="ask everything N times")
    schedule.add_argument(
        "--json", action="store_true", help="print one JSON line an answer, and nothing else"
    )
    settings = schedule.add_argument_group("settings of the answers", "Without them, the model's own.")
    for name, kind, meaning in SETTINGS:
        settings.add_argument(f"--{name}", type=kind, metavar=kind.__name__.upper(), help=meaning)
    settings.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; repeatable")
    _add_engine_options(schedule)
    schedule.set_defaults(run=_schedule)


def _schedule(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.commands.schedule import pair, schedule

    names = [*(name.replace("-", "_") for name, _, _ in SETTINGS), "stop"]
    questions = pair(
        options.prompts, options.image, options.skill, options.reasoning, options.length, options.repeat
    )
    answered = schedule(
        questions,
        options.skill,
        {name: getattr(options, name) for name in names},
        _engine_config(options),
        options.stream,
        options.json,
        console,
    )
    return 0 if answered else 1


def _add_engine_options(command: argparse.ArgumentParser, only: Sequence[str] = ()) -> None:
    group = command.add_argument_group("options of the engine")
    for field in fields(RuntimeConfig):
        if only and field.name not in only:
            continue
        name = field.name if field.name != "seed" else "weights_seed"  # an answer has a seed as well
        group.add_argument(
            f"--{name.replace('_', '-')}",
            dest=f"engine_{field.name}",
            metavar="VALUE",
            help=field.metadata["meaning"]
            + (f" (default: {field.default})" if field.default is not None else ""),
        )


def _engine_config(options: argparse.Namespace) -> RuntimeConfig:
    """The environment's, and over it what the command line says."""
    said = {field.name: getattr(options, f"engine_{field.name}") for field in fields(RuntimeConfig)}
    return RuntimeConfig.from_environment(**{name: text for name, text in said.items() if text is not None})


def _add_parity(commands: "Commands") -> None:
    parity = commands.add_parser(
        "parity",
        help="run a golden folder stage by stage and print the deviations",
        description="Runs every stage of a golden folder and compares it with the values there. "
        "Prints a table and, as the last line, JSON. Exit code 0: all within tolerance, 1: a miss, "
        "2: the folder cannot be run.",
    )
    parity.add_argument("folder", type=Path, metavar="DIR", help="checkpoint with golden values")
    parity.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: %(default)s)")
    parity.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parity.add_argument(
        "--engine",
        action="store_true",
        help="also run every golden decode through the whole engine: alone, mixed, cached, preempted",
    )
    parity.add_argument("--json", action="store_true", help="print nothing but the JSON line to stdout")
    _add_engine_options(parity, DEVICE_HALF)
    parity.set_defaults(run=_parity)


def _parity(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.commands.parity.command import parity

    said = {name: getattr(options, f"engine_{name}") for name in DEVICE_HALF}
    config = RuntimeConfig.from_strings({name: text for name, text in said.items() if text is not None})
    engine = config if options.engine else None
    return 0 if parity(options.folder, options.device, options.dtype, console, engine) else 1


def _add_bench(commands: "Commands") -> None:
    from kestrel_core.commands.bench.arguments import EngineOptions, add_parts

    bench = commands.add_parser(
        "bench",
        help="measure a part of the engine",
        description="Measures a part of the engine, or all of it.",
    )
    parts = bench.add_subparsers(title="what to measure", required=True, metavar="PART")
    add_parts(parts, EngineOptions(_add_engine_options, _engine_config))


def _add_eval(commands: "Commands") -> None:
    evaluate = commands.add_parser(
        "eval",
        help="score a model, or hold an engine's choices against plain torch",
        description="Scores a model, or holds an engine's choices against plain torch.",
    )
    parts = evaluate.add_subparsers(title="on what", required=True, metavar="WHAT")
    _add_eval_choices(parts)
    scenes = parts.add_parser(
        "scenes",
        help="freshly drawn scenes of coloured shapes and words, every skill",
        description="Draws scenes of coloured shapes and printed words, asks about fifteen requests of every "
        "skill about each, and prints a table of scores beside the targets of moondream-tiny. Exit code 0: "
        "done, 1: with --require, a target was missed or an answer differed, 2: it cannot be run as asked.",
    )
    scenes.add_argument("--scenes", type=int, default=500, metavar="N", help="(default: %(default)s)")
    scenes.add_argument(
        "--seed", type=int, default=0, help="the same one draws the same scenes (%(default)s)"
    )
    scenes.add_argument("--url", metavar="HOST:PORT", help="ask a server's gRPC; without, an engine here")
    scenes.add_argument(
        "--concurrency", type=int, metavar="N", help="callers at a time (8 for a server, else a full batch)"
    )
    scenes.add_argument(
        "--compare",
        action="store_true",
        help="ask one at a time, then batched, cached, preempted and streamed, and count differing answers",
    )
    scenes.add_argument(
        "--pictures", type=Path, metavar="DIR", help="somebody else's pictures instead, with a truth.json"
    )
    scenes.add_argument("--json", dest="report", type=Path, metavar="FILE", help="write all of it here too")
    scenes.add_argument(
        "--sheet", type=Path, metavar="FILE", help="draw answers over the first pictures: .svg or .png"
    )
    scenes.add_argument("--require", action="store_true", help="exit with 1 when a target is missed")
    scenes.add_argument(
        "--record", type=Path, metavar="FILE", help="write every choice of the engine here, for eval choices"
    )
    scenes.add_argument(
        "--logprobs",
        action="store_true",
        help="with --record: the two likeliest tokens of each choice too, read beside the CUDA graphs",
    )
    _add_engine_options(scenes)
    scenes.set_defaults(run=_eval_scenes)


def _eval_scenes(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.commands.scenes.command import EvalOptions, eval_scenes

    chosen = EvalOptions(
        options.scenes,
        options.seed,
        options.url,
        options.concurrency,
        options.compare,
        options.pictures,
        options.report,
        options.sheet,
        options.record,
        options.logprobs,
    )
    passed = eval_scenes(chosen, _engine_config(options), console)
    return 0 if passed or not options.require else 1


def _add_eval_choices(parts: "Commands") -> None:
    choices = parts.add_parser(
        "choices",
        help="whether plain torch would choose as an engine did: a file of eval scenes --record",
        description="Feeds what was recorded through plain torch, all positions known beforehand, and holds "
        "every choice (token, coordinate, size) against the logits there. Exit code 0: each is the "
        "reference's, or so near to it that rounding explains the difference, 1: some are not, or requests "
        "failed or are missing, 2: it cannot be run as asked.",
    )
    choices.add_argument("file", type=Path, metavar="FILE", help="made by kestrel eval scenes --record")
    choices.add_argument(
        "--device", default="cpu", help="of the reference: cpu, cuda or cuda:N (default: %(default)s)"
    )
    choices.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    choices.add_argument(
        "--model-path", metavar="PATH", help="the checkpoint, where it is not as it was recorded"
    )
    choices.add_argument(
        "--near",
        type=float,
        metavar="ROUNDINGS",
        help="a difference is explained by a gap of so many roundings of the row's largest logit in the "
        "engine's dtype (default: 64 for float32, 4 for 16 bits)",
    )
    choices.add_argument("--json", dest="report", type=Path, metavar="FILE", help="write all of it here too")
    choices.set_defaults(run=_eval_choices)


def _eval_choices(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.commands.scenes.choices import ChoicesOptions, eval_choices

    chosen = ChoicesOptions(
        options.file, options.device, options.dtype, options.model_path, options.near, options.report
    )
    return 0 if eval_choices(chosen, console) else 1


if __name__ == "__main__":
    sys.exit(main())
