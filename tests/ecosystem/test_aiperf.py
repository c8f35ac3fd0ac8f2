"""NVIDIA's aiperf measures us: 16 callers that stream chats about pictures, and nothing fails."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from other_clients import ENVIRONMENTS, ROOT, variables
from triton_server import Served

pytestmark = [pytest.mark.ecosystem, pytest.mark.triton]

NUM_REQUESTS = 32
ASKED = ROOT / "tests/asked"
OPTIONS = (
    *("--endpoint-type", "chat", "--streaming", "--use-server-token-count", "--ui", "none"),
    *("--concurrency", "16", "--request-count", str(NUM_REQUESTS)),
    *("--custom-dataset-type", "single_turn", "--input-file", "questions.jsonl"),
    *("--export-level", "raw"),  # without, pictures that it did not draw itself are not counted
)


def test_aiperf_counts_the_tokens_that_we_count(stack: Served, tmp_path: Path) -> None:
    before = counted(stack)
    records = profile(stack, tmp_path)
    assert len(records) == NUM_REQUESTS
    assert [record["error"] for record in records if record.get("error")] == []

    totals = {
        name: sum(record["metrics"][name]["value"] for record in records)
        for name in ("usage_prompt_tokens", "usage_completion_tokens", "output_sequence_length", "num_images")
    }
    assert totals["num_images"] == NUM_REQUESTS
    assert totals["output_sequence_length"] == totals["usage_completion_tokens"]
    new = {name: value - before.get(name, 0) for name, value in counted(stack).items()}
    assert new["kestrel:prompt_tokens_total"] == totals["usage_prompt_tokens"]
    assert new["kestrel:generation_tokens_total"] == totals["usage_completion_tokens"]


def profile(stack: Served, folder: Path) -> list[Any]:
    """What aiperf wrote of each request. It is given our tokenizer, since it would fetch one.

    The questions are given too: aiperf's own are lines of plays, in answer to which a model may rightly say
    nothing, and that is an error to aiperf.
    """
    (folder / "questions.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns()))
    tokenizer = folder / "tokenizer"
    tokenizer.mkdir()
    bundled = ROOT / "kestrel_core/bundled/moondream-tiny/tokenizer.json"
    (tokenizer / "tokenizer.json").write_bytes(bundled.read_bytes())
    (tokenizer / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    where = ("--url", f"127.0.0.1:{stack.port}", "--model", "moondream", "--tokenizer", "./tokenizer")
    done = subprocess.run(
        [ENVIRONMENTS / "aiperf/bin/aiperf", "profile", *where, *OPTIONS],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env=variables(folder),
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    [written] = folder.glob("artifacts/*/profile_export.jsonl")
    return [json.loads(line) for line in written.read_text().splitlines()]


def turns() -> list[dict[str, str]]:
    """Questions that somebody wrote about pictures, as aiperf reads them."""
    lines = map(json.loads, (ASKED / "questions.jsonl").read_text(encoding="utf-8").splitlines())
    asked = [line for line in lines if line["skill"] == "query" and line.get("image")]
    return [{"text": line["question"], "image": str(ASKED / line["image"])} for line in asked[:NUM_REQUESTS]]


def counted(stack: Served) -> dict[str, float]:
    """The gateway's counters of tokens. The engine's have those of the gateway's own trial questions too."""
    with urlopen(f"http://127.0.0.1:{stack.port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    counters = [line for line in lines if line.partition("{")[0].endswith("_tokens_total")]
    return {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in counters}
