"""A tiny model with random weights as a folder on disk, for what starts from a path."""

import json
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import save_file
from tiny import tiny_config, tiny_model

from kestrel_core.intake.tokenizer import byte_document


def save_tiny(folder: Path, generation: int = 2) -> Path:
    """Its words are single bytes, so that any text can be asked and any answer read."""
    config = tiny_config(generation, vocab_size=300)
    sections = {name: asdict(getattr(config, name)) for name in ("text", "vision", "region", "tokenizer")}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": f"moondream{generation}", **sections}))
    (folder / "tokenizer.json").write_text(byte_document(config))
    save_file(dict(tiny_model(config).state_dict()), folder / "model.safetensors")
    return folder
