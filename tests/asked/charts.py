"""Bar and line charts as parts of a picture, with printed labels, and values or an axis."""

from collections.abc import Sequence

from parts import COLOURS, Part, Sheet

LEFT, RIGHT, TOP, BOTTOM = 0.13, 0.95, 0.2, 0.86  # of the picture: where values are drawn
Values = Sequence[tuple[str, float]]


def _text(x: float, y: float, size: float, font: str, text: str, anchor: str = "middle") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-family="{font}" text-anchor="{anchor}" '
        f'fill="#222">{text}</text>'
    )


def _frame(sheet: Sheet, title: str, font: str, ticks: Sequence[float], top: float) -> str:
    width, height = sheet.width, sheet.height
    code = _text(width / 2, 0.1 * height, 0.07 * height, font, title)
    for tick in ticks:
        y = height * (BOTTOM - (BOTTOM - TOP) * tick / top)
        code += f'<path d="M{LEFT * width} {y}H{RIGHT * width}" stroke="#ccc"/>'
        code += _text(0.11 * width, y + 0.015 * height, 0.045 * height, font, f"{tick:g}", "end")
    lines = f"M{LEFT * width} {TOP * height}V{BOTTOM * height}H{RIGHT * width}"
    return code + f'<path d="{lines}" stroke="#333" stroke-width="2" fill="none"/>'


def bars(
    title: str,
    values: Values,
    font: str,
    colours: Sequence[str],
    ticks: Sequence[float] = (),
    printed: bool = True,
    top: float = 0,
) -> Part:
    """`colours`: one for all bars, or one for each."""

    def draw(sheet: Sheet) -> str:
        width, height = sheet.width, sheet.height
        highest = top or max(value for _, value in values)
        code = _frame(sheet, title, font, ticks, highest)
        room = (RIGHT - LEFT) * width / len(values)
        for index, (label, value) in enumerate(values):
            x = LEFT * width + room * (index + 0.5)
            tall = (BOTTOM - TOP) * height * value / highest
            colour = COLOURS[colours[index % len(colours)]]
            y = BOTTOM * height - tall
            code += (
                f'<rect x="{x - 0.3 * room}" y="{y}" width="{0.6 * room}" height="{tall}" fill="{colour}"/>'
            )
            code += _text(x, 0.94 * height, 0.055 * height, font, label)
            if printed:
                code += _text(x, y - 0.015 * height, 0.055 * height, font, f"{value:g}")
        return code

    return Part("", draw)


def line(
    title: str,
    values: Values,
    font: str,
    colour: str,
    ticks: Sequence[float] = (),
    printed: bool = True,
    top: float = 0,
) -> Part:
    def draw(sheet: Sheet) -> str:
        width, height = sheet.width, sheet.height
        highest = top or max(value for _, value in values)
        code = _frame(sheet, title, font, ticks, highest)
        room = (RIGHT - LEFT) * width / len(values)
        at = [
            (LEFT * width + room * (index + 0.5), height * (BOTTOM - (BOTTOM - TOP) * value / highest))
            for index, (_, value) in enumerate(values)
        ]
        path = " ".join(f"{x},{y}" for x, y in at)
        code += f'<polyline points="{path}" fill="none" stroke="{COLOURS[colour]}" stroke-width="3"/>'
        for (x, y), (label, value) in zip(at, values, strict=True):
            code += f'<circle cx="{x}" cy="{y}" r="5" fill="{COLOURS[colour]}"/>'
            code += _text(x, 0.94 * height, 0.055 * height, font, label)
            if printed:
                code += _text(x, y - 0.04 * height, 0.055 * height, font, f"{value:g}")
        return code

    return Part("", draw)
