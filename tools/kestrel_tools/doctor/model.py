"""Examines one model: its files, its tensors, its words, and then its answers.

Each part needs the ones before it. Where one of those failed, the part is skipped and says so.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from kestrel_core.build import build_engine, serves_adapters
from kestrel_core.config import RuntimeConfig, moondream_api_key
from kestrel_core.engine import InferenceEngine
from kestrel_core.intake import hub
from kestrel_core.intake.models import MODELS, find_model, unpinned
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.moondream.checkpoint.config_file import parse_config
from kestrel_core.moondream.checkpoint.files import Checkpoint, open_checkpoint, read_json
from kestrel_core.moondream.checkpoint.weights import load_config
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.few_bits_layers import weights_bytes as planned_bytes
from kestrel_core.moondream.lora import Stacks
from kestrel_core.moondream.ops.plain import FLOAT8
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.memory import computing_bytes
from kestrel_tools.doctor import consistency, files, questions, tensors, words
from kestrel_tools.doctor.adapters import examine_adapters
from kestrel_tools.doctor.machine import WORK_BYTES
from kestrel_tools.doctor.report import Finding, Report, Verdict, ok, skipped, warning

FILES, TENSORS, WORDS = "files", "tensors", "words"
AGAIN = "Download the model again, all files of one release."
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model's files are."""

    path: Path
    tokenizer: Path
    is_bundled: bool


def weights_bytes(config: RuntimeConfig) -> int:
    """Of the named model in 16 bits, or in the 4 and 8 of int4; of a checkpoint of one's own in 16 bits, what
    its files take."""
    if config.quantize == "int4":
        return planned_bytes(_shape_of(config), torch.bfloat16, int4=True)
    if config.model_path is not None and config.weights != "random":
        path = Path(config.model_path)
        return sum(file.stat().st_size for file in files.model_files(path, path / "tokenizer.json"))
    network = tensors.build_network(find_model(config.model).config)
    return 2 * sum(parameter.numel() for parameter in network.parameters())


def work_bytes(config: RuntimeConfig) -> int:
    """What computing and the KV cache take at least; in int4 that is counted, as small GPUs are meant."""
    if config.quantize != "int4":
        return WORK_BYTES
    text = _shape_of(config).text
    context = config.max_context or text.max_context
    cells = context * KVCache.bytes_per_cell(text, torch.bfloat16 if config.kv_dtype == "auto" else FLOAT8)
    return computing_bytes(text, config.max_step_tokens, small=True) + cells


def adapters_bytes(config: RuntimeConfig) -> int:
    """Of the room that is kept for adapters, in 16 bits; none if adapters can come from nowhere."""
    if not serves_adapters(config, moondream_api_key()):
        return 0
    text = _shape_of(config).text
    return Stacks.num_bytes(text, config.max_adapters, config.max_adapter_rank, torch.bfloat16)


def _shape_of(config: RuntimeConfig) -> MoondreamConfig:
    known = MODELS.get(config.model)
    default = known.config if known is not None else None
    shape = load_config(Path(config.model_path), default) if config.model_path is not None else default
    return shape or find_model(config.model).config


def examine(report: Report, config: RuntimeConfig, progress: Progress) -> None:
    if config.weights == "random":
        report.add(FILES, "all", skipped("the weights are random numbers, not files"))
        _examine_answers(report, config, None, progress)
        return
    faults_before = report.count(Verdict.FAULT)  # those of the machine do not keep a model from answering
    located = report.learn(
        FILES, "found", lambda: locate(config, progress), lambda found: found[1], "Do what it says."
    )
    if located is None:
        return
    place, _ = located
    _examine_files(report, place, progress)
    known = MODELS.get(config.model)
    shape = _examine_tensors(report, place, known.config if known else None, progress)
    if shape is None:
        for section in (WORDS, questions.SECTION):
            report.add(section, "all", skipped("there is no configuration to go by"))
        return
    _examine_words(report, place, shape)
    examine_adapters(report, config, shape)
    if report.count(Verdict.FAULT) > faults_before:
        advice = "Mend the faults above, then run the doctor again."
        report.add(questions.SECTION, "all", skipped("a faulty model is not asked", advice))
        return
    found = replace(config, model_path=str(place.path), tokenizer_path=str(place.tokenizer))
    _examine_answers(report, found, shape, progress)


def locate(config: RuntimeConfig, progress: Progress) -> tuple[Place, Finding]:
    named = Path(config.tokenizer_path) if config.tokenizer_path else None
    if config.model_path is not None:
        path = Path(config.model_path)
        folder = path if path.is_dir() else path.parent
        place = Place(path, named or folder / "tokenizer.json", False)
        return place, _found(place)
    known = find_model(config.model)
    if known.folder is not None:
        place = Place(known.folder, named or known.folder / "tokenizer.json", named is None)
        return place, _found(place)
    fetched = hub.fetch_model(config.model, progress, config.revision)
    place = Place(fetched.folder, named or fetched.tokenizer, False)
    assert known.repository is not None, "a model comes along or is downloaded"
    commit = fetched.folder.name  # the cache names a folder after the commit that it holds
    loose = unpinned(known.repository.at(config.revision), commit, f"--revision {commit}")
    if loose is not None:
        return place, warning(loose, f"Pin it: --revision {commit}, or KESTREL_REVISION.")
    return place, _found(place)


def _found(place: Place) -> Finding:
    return ok(f"{place.path}, tokenizer {place.tokenizer}")


def _examine_files(report: Report, place: Place, progress: Progress) -> None:
    listed = files.model_files(place.path, place.tokenizer)
    report.check(FILES, "index", lambda: files.check_index(place.path), AGAIN)
    report.check(FILES, "safetensors headers", lambda: files.check_headers(listed), AGAIN)
    hashed = report.learn(
        FILES,
        "read whole",
        lambda: list(files.digests(listed, progress)),
        lambda hashed: ok(f"{len(hashed)} files, {sum(file.stat().st_size for file, _ in hashed):,} bytes"),
        "Check the disk, then download again.",
    )
    for file, sha256 in hashed or ():
        judge = partial(files.judge_digest, file, sha256, place.is_bundled)
        report.check(FILES, f"sha256 of {file.name}", judge, AGAIN)


def _examine_tensors(
    report: Report, place: Place, default: MoondreamConfig | None, progress: Progress
) -> MoondreamConfig | None:
    path = place.path
    file = (path if path.is_dir() else path.parent) / "config.json"
    config = report.learn(
        TENSORS,
        "config.json",
        lambda: parse_config(read_json(file), default) if file.is_file() else load_config(path, default),
        partial(_judge_config, file),
        AGAIN,
    )
    opened = report.learn(TENSORS, "checkpoint", lambda: open_checkpoint(path), _judge_checkpoint, AGAIN)
    if opened is None:
        report.add(TENSORS, "names, shapes, numbers", skipped("the checkpoint cannot be opened"))
        return config
    left_out: list[str] = []
    if config is not None:
        # The tensors tell what an early release's configuration leaves out.
        full = report.learn(
            TENSORS,
            "generation",
            lambda: load_config(path, default),
            lambda config: ok(f"tensors and configuration are of Moondream {config.generation}"),
            AGAIN,
        )
        config = full or config
        wrong = report.learn(
            TENSORS,
            "names",
            lambda: tensors.compare(config, opened),
            lambda wrong: tensors.check_names(wrong, len(opened.tensors), config),
            "Take weights and config.json of one release.",
        )
        if wrong is not None:
            report.check(TENSORS, "shapes", lambda: tensors.check_shapes(wrong), AGAIN)
            left_out = tensors.ignored(wrong, config)
    values = report.learn(
        TENSORS,
        "numbers",
        lambda: dict(tensors.read_values(opened, left_out, progress)),
        lambda values: ok(f"{len(values):,} tensors were read"),
        AGAIN,
    )
    if values is not None:
        report.check(TENSORS, "finite", lambda: tensors.judge_finite(values), AGAIN)
        report.check(TENSORS, "size", lambda: tensors.judge_size(values), AGAIN)
        report.check(TENSORS, "zeros", lambda: tensors.judge_zeros(values), AGAIN)
    return config


def _judge_config(file: Path, config: MoondreamConfig) -> Finding:
    if not file.is_file():
        return ok(f"there is none; the tensors are those of Moondream {config.generation}")
    name = questions.known_as(config) or "none that is published"
    return ok(f"Moondream {config.generation}, shape of {name}")


def _judge_checkpoint(opened: Checkpoint) -> Finding:
    dtypes = sorted({info.dtype for info in opened.tensors.values()})
    return ok(f"{len(opened.tensors):,} tensors, {', '.join(dtypes)}")


def _examine_words(report: Report, place: Place, config: MoondreamConfig) -> None:
    advice = words.TAKE_STARMIE
    tokenizer = report.learn(
        WORDS,
        "tokenizer.json",
        lambda: Tokenizer.from_file(place.tokenizer, config),
        lambda _: ok(f"it fits the vocabulary of {config.text.vocab_size:,}"),
        advice,
    )
    if tokenizer is None:
        return
    document = place.tokenizer.read_text(encoding="utf-8")
    is_known = questions.known_as(config) is not None
    report.check(WORDS, "control tokens", lambda: words.check_controls(document, config), advice)
    report.check(WORDS, "round trips", lambda: words.check_round_trips(tokenizer), advice)
    report.check(WORDS, "spellings", lambda: words.check_spellings(tokenizer, config), advice)
    report.check(WORDS, "templates", lambda: words.check_templates(tokenizer, config, is_known), advice)


def _examine_answers(
    report: Report, config: RuntimeConfig, shape: MoondreamConfig | None, progress: Progress
) -> None:
    """`shape`: of a checkpoint; None: the weights are random, and the answers noise."""
    started = report.learn(
        consistency.SECTION,
        "engine",
        lambda: build_engine(config, None, progress, progress),
        lambda engine: ok(
            f"it runs: {', '.join(f'{name} {what}' for name, what in engine.in_use().items())}; "
            f"ready after {engine.timeline}"
        ),
        "Mend what it says, and run again.",
    )
    if started is None:
        return
    engine, is_exact = InferenceEngine(started), started.in_use()["dtype"] == "float32"
    try:
        consistency.check_consistency(report, engine, is_exact, config.prefix_cache)
        name = questions.known_as(shape) if shape is not None else None
        if name is None:
            reason = "no published model has this shape, so its answers are not known"
            noise = "the weights are random numbers, so the answers are noise"
            report.add(questions.SECTION, "known answers", skipped(reason if shape is not None else noise))
        else:
            questions.ask_known(report, engine, name)
    finally:
        asyncio.run(engine.shutdown(drain=False))
