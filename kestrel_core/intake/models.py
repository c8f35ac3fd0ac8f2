"""The one registry of model names: what each model is, and where its files come from. No torch, no network.

Adding a model means adding an entry to `MODELS`: the command line, error texts, the download and the tables
of the documentation read it from here.

Weights should be pinned to a commit: a branch changes with its owner's next push, and a tag can be moved. The
commits of the published models are not recorded here yet, so `unpinned` names what may change.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MOONDREAM_TINY, MoondreamConfig
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.protocol.names import nearest

INDEX = "model.safetensors.index.json"
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubRepository:
    """A repository on Hugging Face. `kind` says what the revision is: a branch, a tag or a commit."""

    name: str
    revision: str = "main"
    kind: str = "branch"
    files: tuple[str, ...] = ("config.json", INDEX, "*.safetensors")

    def at(self, revision: str | None) -> "HubRepository":
        """The same at another revision, if one is given."""
        if revision is None:
            return self
        return replace(
            self, revision=revision, kind="commit" if COMMIT.fullmatch(revision) else "branch or tag"
        )


@dataclass(frozen=True, slots=True)
class KnownModel:
    """Its files are in `repository`, or come along with this package in `folder`.

    `adapters` is a folder of adapters that come along with it, served where no other folder is configured. A
    folder that is not there holds none.
    """

    name: str
    config: MoondreamConfig
    description: str
    repository: HubRepository | None = None
    folder: Path | None = None
    adapters: Path | None = None


DEFAULT = "moondream3-preview"
DEMO = "moondream-tiny"
BUNDLED = Path(__file__).parents[1] / "bundled" / DEMO

MODELS = {
    model.name: model
    for model in (
        KnownModel(
            "moondream2",
            MOONDREAM2,
            "1.9 billion parameters, dense",
            HubRepository("vikhyatk/moondream2", "2025-06-21", "tag"),
        ),
        KnownModel(
            DEFAULT,
            MOONDREAM3,
            "9 billion parameters, of which 2 billion work on a token",
            HubRepository("moondream/moondream3-preview"),
        ),
        KnownModel(
            "moondream3.1-9B-A2B",
            MOONDREAM3,
            "the release that followed the preview, of the same shape",
            HubRepository("moondream/moondream3.1-9B-A2B"),
        ),
        KnownModel(
            DEMO,
            MOONDREAM_TINY,
            "comes along, answers about drawings, needs neither GPU nor download",
            folder=BUNDLED,
            adapters=BUNDLED / "adapters",
        ),
    )
}
# All published models use this one. The tokenizer.json beside Moondream 2's weights is of an earlier release.
TOKENIZER = HubRepository("moondream/starmie-v1", files=("tokenizer.json",))


def find_model(name: str) -> KnownModel:
    if name not in MODELS:
        hint = nearest(name, MODELS)
        near = hint if "did you mean" in hint else ""  # all names are told already
        raise BadCheckpoint(f'there is no model "{name}", only {", ".join(MODELS)}{near}')
    return MODELS[name]


def unpinned(repository: HubRepository, commit: str, option: str) -> str | None:
    """A warning where the revision may change. `commit` is what it is now, `option` what would keep it."""
    if repository.kind == "commit":
        return None
    why = {"branch": "a branch and may change", "tag": "a tag, and tags can be moved"}.get(
        repository.kind, "no commit and may change"
    )
    return f"{repository.name}: revision {repository.revision} is {why} (now {commit}); pin it with {option}"
