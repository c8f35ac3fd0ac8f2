"""The whole network. `moondream.loading` builds it on the `meta` device and gives it weights."""

from torch import nn

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.region import Region
from kestrel_core.moondream.text import Text
from kestrel_core.moondream.vision import Vision


class Moondream(nn.Module):
    """Its parameters carry the official tensor names, without the leading `model.`; there are no buffers."""

    def __init__(self, config: MoondreamConfig) -> None:
        super().__init__()
        self.config = config
        self.vision = Vision(config.vision)
        self.text = Text(config.text)
        self.region = Region(config.region)
