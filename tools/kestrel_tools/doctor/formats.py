"""Whether libvips decodes every format that is accepted: a tiny picture of each, red left and blue right."""

from pathlib import Path

import numpy as np

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_tools.doctor.report import Finding, fault, ok

PICTURES = Path(__file__).with_name("pictures")
FORMATS = {
    "JPEG": "halves.jpg",
    "PNG": "halves.png",
    "WebP": "halves.webp",
    "GIF": "halves.gif",
    "TIFF": "halves.tif",
    "AVIF": "halves.avif",
}
RED, BLUE = (255, 0, 0), (0, 0, 255)
EDGE = 4  # pixels beside the middle, where a JPEG smears
TOLERANCE = 8  # of 255; the lossy formats were seen to lose 1


def try_formats(folder: Path = PICTURES) -> Finding:
    troubles = [
        f"{name} ({trouble})" for name, file in FORMATS.items() if (trouble := _trouble(folder / file))
    ]
    if troubles:
        return fault(
            f"not decoded: {', '.join(troubles)}",
            "Reinstall libvips: pip install --force-reinstall pyvips pyvips-binary.",
        )
    return ok(f"libvips decodes {', '.join(FORMATS)}")


def _trouble(file: Path) -> str:
    try:
        pixels = decode_image(file.read_bytes(), ImageLimits()).astype(np.int16)
    except Exception as error:  # the other formats are still to be tried
        return f"{type(error).__name__}: {error}"
    middle = pixels.shape[1] // 2
    left, right = pixels[:, : middle - EDGE] - RED, pixels[:, middle + EDGE :] - BLUE
    apart = int(max(np.abs(left).max(), np.abs(right).max()))
    return f"its colours are {apart} of 255 away" if apart > TOLERANCE else ""
