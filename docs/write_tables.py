"""Writes the tables of README.md and docs/ that follow from the code's own registries.

    python docs/write_tables.py          # writes them anew; a test says when that was forgotten

A table stands between `<!-- table: name -->` and `<!-- end -->`.
"""

import re
from dataclasses import fields
from pathlib import Path

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import MODELS
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.fields import INPUTS, LATER, PARAMETERS, Field
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import SkillSpec
from kestrel_gateway.options import GatewayOptions

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs/interface.md", ROOT / "docs/gateway.md")
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def inputs() -> str:
    rows = [
        (
            f"`{field.name}`",
            field.type,
            str(list(field.dims)),
            _takers(field),
            field.default,
            _limits(field.argument),
        )
        for field in INPUTS
    ]
    later = ", ".join(f"`{name}`" for name in LATER)
    table = _table(("input", "type", "dims", "taken by", "default", "what it is, and its limits"), rows)
    return f"{table}\nDecided and not served yet, so refused by name: {later}.\n"


def _takers(field: Field) -> str:
    skills = list(builtin_skills())
    names = [skill.name for skill in skills if _takes(skill, field)]
    return "all" if len(names) == len(skills) else ", ".join(names)


def _takes(skill: SkillSpec, field: Field) -> bool:
    if field.name == "STREAM":
        return skill.streams
    if field.role == "setting":
        return field.key in skill.settings
    return field.role == "request" or field.key in {argument.name for argument in skill.arguments}


def parameters() -> str:
    rows = [(f"`{name}`", _limits(argument)) for name, argument in PARAMETERS.items()]
    return _table(("parameter", "what it is, and its limits"), rows)


def _limits(argument: Argument) -> str:
    limit = argument.range
    if argument.kind is str and not argument.choices:
        limit = f"at most {argument.max_bytes:,} bytes"
    elif argument.kind is list:
        limit = f"at most {argument.max_items}"
    return f"{argument.meaning}; {limit}" if limit else argument.meaning


def skills() -> str:
    rows = []
    for skill in builtin_skills():
        image = ["`IMAGE`"] if skill.image == "required" else []
        needed = image + [f"`{argument.label}`" for argument in skill.arguments if argument.required]
        perhaps = [f"`{argument.label}`" for argument in skill.arguments if not argument.required]
        perhaps += ["`IMAGE`"] if skill.image == "optional" else []
        rows.append(
            (
                f"`{skill.name}`",
                skill.meaning,
                ", ".join(needed),
                ", ".join(perhaps),
                skill.answers,
                "yes" if skill.streams else "no",
            )
        )
    return _table(("skill", "", "needs", "takes", "answers", "streams"), rows)


def errors() -> str:
    def below(kind: type[KestrelError]) -> list[type[KestrelError]]:
        return [one for child in kind.__subclasses__() for one in (child, *below(child))]

    # Those that the wire knows: whoever has imported the gateway has its errors about HTTP as well.
    kinds = [kind for kind in below(KestrelError) if kind.__module__ == KestrelError.__module__]
    rows = [(f"`{kind.__name__}`", kind.code, kind.reason, str(kind.status)) for kind in kinds]
    return _table(("class", "code", "reason", "HTTP status at a gateway"), rows)


def options() -> str:
    rows = [
        (
            f"`KESTREL_{field.name.upper()}`",
            "none" if field.default is None else f"`{field.default}`",
            field.metadata["meaning"],
        )
        for field in fields(RuntimeConfig)
    ]
    return _table(("variable", "default", "meaning"), rows)


def limits() -> str:
    rows = [
        (f"`{field.name}`", f"{field.default:,}", field.metadata["meaning"])
        for field in fields(GatewayOptions)
        if field.metadata
    ]
    return _table(("limit", "default", "of what"), rows)


def models() -> str:
    return _table(
        ("model", "what it is"), [(f"`{name}`", model.description) for name, model in MODELS.items()]
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


TABLES = {
    "inputs": inputs,
    "parameters": parameters,
    "skills": skills,
    "errors": errors,
    "options": options,
    "models": models,
    "limits": limits,
}


def filled(page: str) -> str:
    return BLOCK.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
