"""What the model cannot know: noise, and two pictures that look like photographs, all from noise and blur."""

from parts import Sheet

GRAIN = (
    '<filter id="grain"><feTurbulence type="fractalNoise" baseFrequency=".8" seed="3"/>'
    '<feColorMatrix values="0 0 0 0 .5 0 0 0 0 .5 0 0 0 0 .5 .5 0 0 0 -.12"/></filter>'
    '<rect width="100%" height="100%" filter="url(#grain)" opacity=".5"/>'
)


def noise(sheet: Sheet) -> str:
    return (
        '<filter id="noise" x="0" y="0" width="1" height="1">'
        '<feTurbulence type="turbulence" baseFrequency=".35" numOctaves="2" seed="8"/>'
        '<feColorMatrix values="3 0 0 0 0 0 3 0 0 0 0 0 3 0 0 0 0 0 0 1"/></filter>'
        '<rect width="100%" height="100%" filter="url(#noise)"/>'
    )


def mountains(sheet: Sheet) -> str:
    """A lake under mountains at dusk."""
    w, h = sheet.width, sheet.height

    def ridge(points: str, colour: str, blur: float) -> str:
        at = " ".join(
            f"{float(x) * w:.0f},{float(y) * h:.0f}" for x, y in (p.split(",") for p in points.split())
        )
        return f'<polygon points="{at}" fill="{colour}" filter="url(#rough{blur:g})"/>'

    def rough(blur: float, scale: float) -> str:
        return (
            f'<filter id="rough{blur:g}">'
            '<feTurbulence type="fractalNoise" baseFrequency=".05" numOctaves="4" seed="5"/>'
            f'<feDisplacementMap in="SourceGraphic" scale="{scale}"/>'
            f'<feGaussianBlur stdDeviation="{blur}"/></filter>'
        )

    return (
        '<linearGradient id="dusk" x2="0" y2="1"><stop offset="0" stop-color="#51618c"/>'
        '<stop offset=".45" stop-color="#e8b48c"/><stop offset=".6" stop-color="#f0cfa6"/>'
        '<stop offset=".61" stop-color="#9d8c86"/><stop offset="1" stop-color="#2d3648"/></linearGradient>'
        f'<rect width="100%" height="100%" fill="url(#dusk)"/>{rough(1.5, 14)}{rough(0.6, 22)}{rough(3, 8)}'
        + ridge(
            "-0.1,.6 .05,.4 .16,.46 .3,.25 .42,.42 .55,.33 .7,.47 .82,.3 1.1,.5 1.1,.62 -0.1,.62",
            "#6f7590",
            1.5,
        )
        + ridge("-0.1,.62 -0.1,.5 .1,.55 .28,.47 .4,.58 .6,.6 .8,.52 1.1,.44 1.1,.62", "#3a3f4e", 0.6)
        + ridge("-0.1,.62 .1,.68 .28,.76 .4,.66 .6,.63 .8,.72 1.1,.8 1.1,.62", "#2f3547", 3)
        + GRAIN
    )


def bokeh(sheet: Sheet) -> str:
    """Street lights at night, out of focus, behind the dark outline of a person."""
    at = (
        ("#ffb347", 0.1, 0.3, 26),
        ("#ff6f61", 0.24, 0.48, 20),
        ("#ffd27f", 0.33, 0.22, 30),
        ("#8fd3ff", 0.44, 0.42, 18),
        ("#ffe9b0", 0.7, 0.26, 28),
        ("#ff9f68", 0.83, 0.46, 24),
        ("#b4f0c0", 0.93, 0.24, 18),
        ("#ffc57a", 0.76, 0.6, 14),
        ("#ff8a80", 0.12, 0.62, 14),
    )
    lights = "".join(
        f'<circle cx="{x * sheet.width}" cy="{y * sheet.height}" r="{r}" fill="{colour}" opacity=".55" '
        'filter="url(#near)"/>'
        for colour, x, y, r in at
    )
    left, right = (
        "M150 280C150 210 185 190 205 182C190 165 188 110 222 108",
        "C256 110 256 165 240 182C262 190",
    )
    person = f"{left}{right} 296 210 296 280z"
    return (
        '<filter id="near"><feGaussianBlur stdDeviation="2"/></filter>'
        '<filter id="far"><feGaussianBlur stdDeviation="3"/></filter>'
        '<linearGradient id="night" x2="0" y2="1"><stop offset="0" stop-color="#0e1320"/>'
        '<stop offset="1" stop-color="#2b2530"/></linearGradient>'
        f'<rect width="100%" height="100%" fill="url(#night)"/>{lights}'
        f'<path d="{person}" fill="#15121a" filter="url(#far)"/>{GRAIN}'
    )
