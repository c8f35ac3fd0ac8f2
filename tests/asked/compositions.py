"""All forty pictures, laid out by hand: here those of shapes, words and charts, and what nobody can know."""

from charts import bars, line
from everyday import THINGS
from parts import (
    Picture,
    fading,
    panel,
    plain,
    shape,
    stripes,
    thing,
    word,
)
from photographs import bokeh, mountains, noise

FRUIT = (("Apples", 12), ("Pears", 7), ("Plums", 20), ("Figs", 4))
VISITORS = (("Mon", 30), ("Tue", 45), ("Wed", 20), ("Thu", 60), ("Fri", 50))
RAIN = (("Jan", 80), ("Feb", 65), ("Mar", 40), ("Apr", 55), ("May", 25), ("Jun", 10))
TEAMS = (("Lions", 9), ("Bears", 14), ("Owls", 6))
SALES = (("Q1", 20), ("Q2", 30), ("Q3", 50), ("Q4", 80))

SHAPES = (
    Picture(
        "shapes.png",
        "shapes",
        plain("#f6f2e6"),
        [
            shape("square", "green", 0.18, 0.27, 0.4, 8),
            shape("circle", "orange", 0.5, 0.24, 0.22),
            shape("star", "purple", 0.82, 0.28, 0.36),
            shape("heart", "red", 0.22, 0.75, 0.26),
            shape("triangle", "blue", 0.55, 0.76, 0.36),
            shape("diamond", "yellow", 0.85, 0.76, 0.16),
        ],
        480,
        360,
    ),
    Picture(
        "circles.png",
        "shapes",
        fading("#1b1e2c", "#3a355c"),
        [
            shape("circle", "red", 0.14, 0.24, 0.26),
            shape("circle", "red", 0.4, 0.3, 0.18),
            shape("circle", "red", 0.2, 0.72, 0.36),
            shape("circle", "yellow", 0.82, 0.26, 0.3),
            shape("square", "white", 0.6, 0.62, 0.2),
            shape("ring", "cyan", 0.86, 0.76, 0.24),
        ],
        480,
        360,
    ),
    Picture(
        "outlined.jpg",
        "shapes",
        stripes("#e8e2d0", "#d4c9ab", 0.16, 20),
        [
            shape("heart", "pink", 0.18, 0.3, 0.36, edge="black"),
            shape("star", "yellow", 0.5, 0.28, 0.36, 12, edge="black"),
            shape("cross", "blue", 0.82, 0.3, 0.28, edge="white"),
            shape("triangle", "green", 0.24, 0.76, 0.34, edge="black"),
            shape("triangle", "red", 0.54, 0.78, 0.26, edge="black"),
            shape("square", "brown", 0.84, 0.76, 0.28),
        ],
    ),
    Picture(
        "row.png",
        "shapes",
        plain("#ffffff"),
        [
            shape("circle", "blue", 0.1, 0.5, 0.36),
            shape("square", "red", 0.26, 0.5, 0.36),
            shape("triangle", "green", 0.42, 0.54, 0.4),
            shape("star", "orange", 0.58, 0.5, 0.4),
            shape("circle", "black", 0.74, 0.5, 0.36),
            shape("diamond", "purple", 0.9, 0.5, 0.38),
        ],
        480,
        180,
    ),
)

PRINTED = (
    Picture(
        "closed.png",
        "words",
        fading("#6b7d8f", "#3c4957"),
        [
            panel("#fff8e8", 0.5, 0.5, 0.8, 0.56, "#b3202a", -4),
            word("CLOSED", 0.5, 0.57, 0.21, "DejaVu Sans", "red", -4, bold=True),
        ],
    ),
    Picture(
        "cafe.jpg",
        "noto",
        plain("#4a3527"),
        [
            word("Fresh Coffee", 0.5, 0.3, 0.26, "Caveat", "white"),
            thing("coffee", 0.3, 0.68, 0.42),
            thing("cookie", 0.7, 0.7, 0.28),
        ],
    ),
    Picture(
        "words.png",
        "words",
        plain("#fdfdfd"),
        [
            word("NORTH", 0.34, 0.27, 0.22, "Roboto Slab", "red"),
            word("river", 0.68, 0.58, 0.24, "Lora", "blue"),
            word("Seven", 0.3, 0.88, 0.22, "Nunito", "green", bold=True),
        ],
    ),
    Picture(
        "ticket.png",
        "words",
        plain("#d9e8e3"),
        [
            panel("#ffffff", 0.5, 0.5, 0.9, 0.8, "#2c6e5b"),
            word("PLATFORM 9", 0.5, 0.32, 0.18, "Liberation Serif", "black"),
            word("10:45", 0.5, 0.56, 0.2, "Liberation Mono", "black", bold=True),
            thing("train", 0.5, 0.76, 0.24, drawn="twemoji"),
        ],
    ),
    Picture(
        "sale.jpg",
        "fluent-emoji-flat",
        plain("#ffe14d"),
        [
            word("SHOE SALE", 0.5, 0.3, 0.3, "Bebas Neue", "black", -5),
            thing("shoe", 0.3, 0.68, 0.42),
            word("25", 0.74, 0.8, 0.4, "DejaVu Serif", "red", bold=True),
        ],
    ),
    Picture(
        "poster.png",
        "twemoji",
        fading("#ffd9a8", "#ff9e7a"),
        [
            word("ZOO DAY", 0.5, 0.26, 0.24, "Bebas Neue", "purple"),
            thing("lion", 0.25, 0.66, 0.4),
            thing("panda", 0.6, 0.7, 0.34),
            shape("star", "white", 0.88, 0.5, 0.2),
            shape("star", "white", 0.07, 0.4, 0.14),
            thing("banana", 0.88, 0.84, 0.2),
        ],
    ),
    Picture(
        "toys.png",
        "fluent-emoji-flat",
        plain("#e3eefc"),
        [
            thing("robot", 0.2, 0.34, 0.42),
            shape("square", "red", 0.5, 0.3, 0.22),
            shape("circle", "green", 0.76, 0.28, 0.22),
            thing("rocket", 0.82, 0.72, 0.4),
            thing("fire truck", 0.5, 0.76, 0.34),
            shape("triangle", "yellow", 0.2, 0.82, 0.24),
        ],
    ),
)

CHARTS = (
    Picture(
        "basket.png",
        "charts",
        plain("#ffffff"),
        [bars("Fruit sold", FRUIT, "DejaVu Sans", ["blue"])],
        values=FRUIT,
    ),
    Picture(
        "visitors.png",
        "charts",
        plain("#fbfbf7"),
        [bars("Visitors", VISITORS, "Liberation Sans", ["green"], range(0, 61, 10), False, 60)],
        values=VISITORS,
    ),
    Picture(
        "rainfall.png",
        "charts",
        plain("#ffffff"),
        [line("Rain in mm", RAIN, "Nunito", "blue", top=90)],
        values=RAIN,
    ),
    Picture(
        "teams.jpg",
        "charts",
        plain("#f4f4f4"),
        [bars("Points", TEAMS, "Roboto Slab", ["red", "orange", "purple"])],
        values=TEAMS,
    ),
    Picture(
        "sales.png",
        "charts",
        plain("#ffffff"),
        [line("Sales", SALES, "Liberation Serif", "red", range(0, 101, 20), False, 100)],
        values=SALES,
    ),
)

UNKNOWN = (
    Picture("noise.jpg", "nothing known", noise, [], 240, 180),
    Picture("fade.png", "nothing known", fading("#f2a65a", "#3b6ea8", across=True), [], 400, 240),
    Picture("mountains.jpg", "nothing known", mountains, [], 420, 280),
    Picture("lights.jpg", "nothing known", bokeh, [], 420, 280),
)

PICTURES = (*THINGS, *SHAPES, *PRINTED, *CHARTS, *UNKNOWN)
