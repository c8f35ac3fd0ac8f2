"""What may be asked about how a picture looks: its weather, day or night, colours, background. No torch."""

import math
from collections.abc import Callable
from functools import lru_cache
from random import Random

import numpy as np

from kestrel_tools.scenes.world import Rgb
from kestrel_tools.things.colour import LUMINANCE, UNCOLOURED
from kestrel_tools.things.colour import names_of as colours_of
from kestrel_tools.things.language.fact import Fact, yes_no
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.scene import Item, Scene

from .gist_words import QUESTIONS

# The luminance, and the mean of its red, green and blue, of a ground that nobody calls otherwise.
DARK, LIGHT = (0.06, 0.33), (0.62, 0.72)
PATTERNED = 0.25  # how far the two colours of stripes must be apart to be seen
NO_WEATHER = 0.015  # how often the weather is asked about where nothing shows it
COMMON = 0.4  # how often it is asked about what is so in most pictures
# The weather that things show where nothing else of the weather is there.
WEATHER = {
    frozenset(("sun",)): "sunny",
    frozenset(("snowflake",)): "snowy",
    frozenset(("snowflake", "snowman")): "snowy",
    frozenset(("snowflake", "cloud")): "snowy",
    frozenset(("cloud",)): "cloudy",
    frozenset(("cloud", "lightning")): "stormy",
}
WINTER = (frozenset(("snowman",)), frozenset(("snowflake",)), frozenset(("snowflake", "snowman")))
TOLD = {
    "sunny": {"is raining": "no", "is snowing": "no", "is sunny": "yes", "sun out": "yes"},
    "snowy": {"is raining": "no", "is snowing": "yes", "is sunny": "no", "sun out": "no"},
    "cloudy": {"is sunny": "no", "sun out": "no", "is snowing": "no"},
    "stormy": {"is sunny": "no", "sun out": "no", "is snowing": "no"},
}


def asked(rng: Random, kind: str, *subjects: str) -> str:
    return asked_of(rng, kind, *subjects, among=QUESTIONS)


@lru_cache(4096)
def _shade(rgb: Rgb) -> str:
    """Light, dark, or empty where it is neither."""
    luminance, mean = float(LUMINANCE @ np.power(rgb, 2.2)), sum(rgb) / 3
    if luminance < DARK[0] and mean < DARK[1]:
        return "dark"
    return "light" if luminance > LIGHT[0] and mean > LIGHT[1] else ""


@lru_cache(4096)
def _colour_name(rgb: Rgb) -> str:
    return str(colours_of(np.array([rgb]))[0])


def brightness(scene: Scene) -> str:
    """Whether all of the ground is light, or dark; empty where it is neither."""
    ground = scene.background
    shades = {_shade(rgb) for rgb in (ground.first, ground.second, *(mark.rgb for mark in scene.marks))}
    return shades.pop() if len(shades) == 1 else ""


def sky(rng: Random, scene: Scene) -> Fact | None:
    """The weather, and whether it is day or night, where things show it and nothing is against it."""
    shown = tuple(item for item in scene.items if _of_weather(item))
    there = frozenset(item.noun for item in shown)
    if not shown:
        return _no_weather(rng, scene) if rng.random() < NO_WEATHER else None
    evidence = (("the sky", shown),)
    if rng.random() < 0.5 and ("sun" in there) != ("moon" in there):
        return _time_of_day(rng, scene, there, evidence)
    weather = WEATHER.get(there, "")
    if there in WINTER and rng.random() < (0.4 if weather else 1.0):
        kind, answer = rng.choice((("cold or warm", "cold"), ("winter or summer", "winter")))
        return Fact("weather", asked(rng, kind), answer, evidence=evidence)
    if there == {"sun", "cloud"}:
        return Fact("weather", asked(rng, "sun out"), "yes", evidence=evidence)
    if not weather or (weather == "sunny" and brightness(scene) == "dark"):
        return None
    told = TOLD[weather]
    kind = "weather" if rng.random() < 0.5 else rng.choice(tuple(told))
    return Fact("weather", asked(rng, kind), told.get(kind, weather), evidence=evidence)


def _of_weather(item: Item) -> bool:
    noun = item.known_as
    return "weather" in noun.kinds or "weather" in noun.arguably


def _no_weather(rng: Random, scene: Scene) -> Fact | None:
    """Where nothing falls from the sky, not even specks of decoration, it does not rain."""
    if scene.marks or not scene.items:
        return None
    return Fact("weather", asked(rng, rng.choice(("is raining", "is snowing", "sun out"))), "no")


def _time_of_day(
    rng: Random, scene: Scene, there: frozenset[str], evidence: tuple[tuple[str, tuple[Item, ...]], ...]
) -> Fact | None:
    time = {("sun", "light"): "day", ("moon", "dark"): "night"}.get(
        ("sun" if "sun" in there else "moon", brightness(scene))
    )
    if time is None or (time == "day" and rng.random() > COMMON):  # moons on dark grounds are rare
        return None
    kind = rng.choice(("day or night", "day or night", "is day", "is night"))
    answer = time if kind == "day or night" else yes_no(kind == f"is {time}")
    return Fact("day or night", asked(rng, kind), answer, evidence=evidence)


def colouring(rng: Random, scene: Scene) -> Fact | None:
    """Whether things have one colour, and whether the picture has any."""
    colours = [item.colour for item in scene.items if item.colour]
    if rng.random() < 0.5 and len(scene.items) > 1:
        same = len({*colours}) == 1
        if (same and len(colours) < len(scene.items)) or not colours:
            return None
        return Fact("gist", asked(rng, "one colour"), yes_no(same)) if same or rng.random() < COMMON else None
    if any(colour not in UNCOLOURED for colour in colours):
        told = {"black and white": "no", "in colour": "yes", "colour or not": "in color"}
    elif scene.items and all(item.is_shape for item in scene.items) and _is_gray(scene):
        told = {"black and white": "yes", "in colour": "no", "colour or not": "black and white"}
    else:
        return None
    kind = rng.choice(tuple(told))
    return Fact("gist", asked(rng, kind), told[kind]) if rng.random() < COMMON else None


def _is_gray(scene: Scene) -> bool:
    if scene.lines or scene.marks:
        return False
    return {_colour_name(rgb) for rgb in (scene.background.first, scene.background.second)} <= {*UNCOLOURED}


def background(rng: Random, scene: Scene) -> Fact | None:
    """Plain or striped, light or dark, where there is nothing on it but what is asked about otherwise."""
    if scene.marks or scene.cards is not None:
        return None
    pattern, light = pattern_of(scene), brightness(scene)
    if light and rng.random() < 0.4:
        other = "light" if light == "dark" else "dark"
        return _ground(rng, light, other)
    if not pattern:
        return None
    if rng.random() < 0.35:
        name = _colour_name(scene.background.first) if pattern == "plain" else ""
        if pattern == "plain" and not name:
            return None
        return Fact("ground", asked(rng, "background"), f"{pattern} {name}".strip())
    others = ("striped", "checkered", "patterned") if pattern == "plain" else ("plain",)
    return _ground(rng, pattern, rng.choice(others))


def pattern_of(scene: Scene) -> str:
    ground = scene.background
    if ground.kind == "plain":
        return "plain"
    named = {"stripes": "striped", "checks": "checkered"}.get(ground.kind, "")
    return named if math.dist(ground.first, ground.second) > PATTERNED else ""


def _ground(rng: Random, right: str, wrong: str) -> Fact:
    if rng.random() < 0.5:
        pair = (right, wrong) if rng.random() < 0.5 else (wrong, right)
        return Fact("ground", asked(rng, "background or", *pair), right)
    yes = rng.random() < 0.5
    return Fact("ground", asked(rng, "background is", right if yes else wrong), yes_no(yes))


def medium(rng: Random, scene: Scene) -> Fact | None:
    """Whether it is a drawing; all that is made here is."""
    kinds = {"medium": "a drawing", "is photo": "no", "is drawing": "yes", "is chart": "no"}
    kind = rng.choice(tuple(kinds))
    if all(item.is_shape for item in scene.items):
        return None
    if kind == "is chart" and (scene.marks or scene.lines or scene.page or scene.cards):
        return None
    return Fact("medium", asked(rng, kind), kinds[kind])


WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {
    sky: 1.2,
    colouring: 0.2,
    background: 0.3,
    medium: 0.06,
}
