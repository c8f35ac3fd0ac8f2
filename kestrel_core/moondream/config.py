"""The Moondream models as data: dimensions, ids and everything else in which generations differ. No torch.

`MOONDREAM2`, `MOONDREAM05` and `MOONDREAM3` are the published models.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

LEGACY_EOS_ID = 50256


@dataclass(frozen=True, slots=True)
class MoEConfig:
    num_experts: int = 64
    start_layer: int = 4
    experts_per_token: int = 8
    expert_inner_dim: int = 1024


@dataclass(frozen=True, slots=True)
class TextConfig:
    dim: int = 2048
    ff_dim: int = 8192
    n_layers: int = 24
    vocab_size: int = 51200
    max_context: int = 2048  # what is served unless the configuration says otherwise
    usable_context: int = 2048  # what the generation is good for
    n_heads: int = 32
    n_kv_heads: int = 32
    rotary_base: float = 10_000.0
    tau: bool = False
    moe: MoEConfig | None = None
    group_size: int | None = None

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_heads

    @property
    def rotary_dim(self) -> int:
        """Half of each head rotates, the other half passes."""
        return self.head_dim // 2

    @property
    def qkv_dim(self) -> int:
        return (self.n_heads + 2 * self.n_kv_heads) * self.head_dim

    def has_experts(self, layer: int) -> bool:
        return self.moe is not None and layer >= self.moe.start_layer


@dataclass(frozen=True, slots=True)
class VisionConfig:
    enc_dim: int = 1152
    enc_patch_size: int = 14
    enc_n_layers: int = 27
    enc_ff_dim: int = 4304
    enc_n_heads: int = 16
    proj_inner_dim: int = 8192
    proj_out_dim: int = 2048
    crop_size: int = 378
    in_channels: int = 3
    max_crops: int = 12
    overlap_margin: int = 4
    # Moondream 2 was trained on pixels normalised in bfloat16, which gives other values.
    pixel_dtype: Literal["float32", "bfloat16"] = "float32"

    @property
    def grid(self) -> int:
        """Patches along a side of a crop."""
        return self.crop_size // self.enc_patch_size

    @property
    def num_patches(self) -> int:
        return self.grid**2

    @property
    def patch_dim(self) -> int:
        return self.in_channels * self.enc_patch_size**2

    @property
    def margin_px(self) -> int:
        return self.overlap_margin * self.enc_patch_size

    @property
    def window_px(self) -> int:
        """The distance between neighbouring crops: a crop without its two margins."""
        return self.crop_size - 2 * self.margin_px


@dataclass(frozen=True, slots=True)
class RegionConfig:
    dim: int = 2048
    coord_feat_dim: int = 256
    coord_out_dim: int = 1024
    size_feat_dim: int = 512
    size_out_dim: int = 2048
    inner_dim: int | None = None  # None: each decoder is one linear layer
    norm: bool = False  # a LayerNorm shared by both decoders
    # Moondream 2 rounds the phases of its Fourier features to the model's dtype at every step.
    float32_phases: bool = True
    group_size: int | None = None

    @property
    def num_size_bins(self) -> int:
        return self.size_out_dim // 2


@dataclass(frozen=True, slots=True)
class Template:
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Captions:
    short: tuple[int, ...] = (1, 32708, 2, 12492, 3)
    normal: tuple[int, ...] = (1, 32708, 2, 6382, 3)
    long: tuple[int, ...] = (1, 32708, 2, 4059, 3)


@dataclass(frozen=True, slots=True)
class Templates:
    caption: Captions = field(default_factory=Captions)
    query: Template = Template((1, 15381, 2), (3,))
    detect: Template = Template((1, 7235, 476, 2), (3,))
    point: Template = Template((1, 2581, 2), (3,))
    segment: Template | None = None  # that of the published models is not public


@dataclass(frozen=True, slots=True)
class TokenizerConfig:
    bos_id: int = 0
    eos_id: int = 0
    answer_id: int = 3
    thinking_id: int = 4
    coord_id: int = 5
    size_id: int = 6
    start_ground_points_id: int = 7
    end_ground_id: int = 9
    templates: Templates = field(default_factory=Templates)

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids that steer the model's answer. The tokenizer has further special tokens of its own."""
        ids = (self.bos_id, self.eos_id, self.answer_id, self.thinking_id, self.coord_id, self.size_id)
        return frozenset((*ids, self.start_ground_points_id, self.end_ground_id))


@dataclass(frozen=True, slots=True)
class DialogConfig:
    """How a generation expects to be asked, and the defaults of its answers."""

    question_lead: str = ""  # put before a question; an object always gets a space
    answer_suffixes: int = 1  # how often a plain question's suffix is repeated
    suffix_before_thinking: bool = False
    masks_controls: bool = True  # answer, end and size tokens are suppressed after the first step
    two_way_objects: bool = True  # "another object?" weighs coord against end, not all tokens
    reasons: bool = True
    spatial_refs: bool = True
    text_only: bool = True
    temperature: float = 0.5
    top_p: float = 0.9
    max_tokens: int = 768
    max_objects: int = 150


@dataclass(frozen=True, slots=True)
class MoondreamConfig:
    generation: int
    text: TextConfig
    vision: VisionConfig
    region: RegionConfig
    tokenizer: TokenizerConfig
    dialog: DialogConfig

    @property
    def image_prefix_length(self) -> int:
        """BOS and the image's embeddings, which see each other in both directions."""
        return 1 + self.vision.num_patches

    def images_of_step(self, step_tokens: int) -> int:
        """How many images' prefixes a step of so many positions can have; one may be longer than the step."""
        return max(step_tokens // self.image_prefix_length, 1)


MOONDREAM2 = MoondreamConfig(
    generation=2,
    text=TextConfig(),
    vision=VisionConfig(pixel_dtype="bfloat16"),
    region=RegionConfig(inner_dim=8192, float32_phases=False),
    tokenizer=TokenizerConfig(),
    dialog=DialogConfig(
        answer_suffixes=2, suffix_before_thinking=True, two_way_objects=False, top_p=0.3, max_objects=50
    ),
)

LEGACY_DIALOG = replace(
    MOONDREAM2.dialog,
    question_lead=" ",
    answer_suffixes=1,
    masks_controls=False,
    reasons=False,
    spatial_refs=False,
    text_only=False,
)

LEGACY_TOKENIZER = replace(
    MOONDREAM2.tokenizer,
    bos_id=LEGACY_EOS_ID,
    eos_id=LEGACY_EOS_ID,
    templates=Templates(
        caption=Captions(
            (198, 198, 16438, 8305, 25), (198, 198, 24334, 1159, 25), (198, 198, 14617, 8305, 25)
        ),
        query=Template((198, 198, 24361, 25), (198, 198, 33706, 25)),
        detect=Template((198, 198, 47504, 25), (628,)),
        point=Template((198, 198, 12727, 25), (628,)),
    ),
)

MOONDREAM05 = replace(
    MOONDREAM2,
    text=replace(MOONDREAM2.text, dim=1024, ff_dim=4096, n_heads=16, n_kv_heads=16),
    vision=replace(MOONDREAM2.vision, enc_dim=720, enc_ff_dim=2690, enc_n_heads=10, proj_out_dim=1024),
    region=replace(MOONDREAM2.region, dim=1024),
    tokenizer=LEGACY_TOKENIZER,
    dialog=LEGACY_DIALOG,
)

MOONDREAM3 = replace(
    MOONDREAM2,
    generation=3,
    text=replace(
        MOONDREAM2.text,
        max_context=4096,
        usable_context=32_768,
        rotary_base=1_500_000.0,
        tau=True,
        moe=MoEConfig(),
    ),
    vision=VisionConfig(),
    region=RegionConfig(norm=True),
    dialog=DialogConfig(),
)

# Small enough for a CPU and for the repository, with every part of a Moondream 3: tiles, tau, experts, region
# heads. `examples/train_tiny` trains it.
MOONDREAM_TINY = replace(
    MOONDREAM3,
    text=replace(
        MOONDREAM3.text,
        dim=192,
        ff_dim=576,
        n_layers=9,
        vocab_size=1536,
        max_context=1024,
        n_heads=3,
        n_kv_heads=3,
        moe=MoEConfig(num_experts=8, start_layer=2, experts_per_token=2, expert_inner_dim=128),
    ),
    vision=replace(
        MOONDREAM3.vision,
        enc_dim=192,
        enc_n_layers=6,
        enc_ff_dim=512,
        enc_n_heads=4,
        crop_size=196,
        max_crops=4,
        overlap_margin=2,
        proj_inner_dim=512,
        proj_out_dim=192,
    ),
    region=replace(MOONDREAM3.region, dim=192, coord_feat_dim=128, size_feat_dim=128),
    tokenizer=TokenizerConfig(
        templates=Templates(
            caption=Captions((1, 10, 2, 15, 3), (1, 10, 2, 16, 3), (1, 10, 2, 17, 3)),
            query=Template((1, 11, 2), (3,)),
            detect=Template((1, 12, 2), (3,)),
            point=Template((1, 13, 2), (3,)),
            segment=Template((1, 14, 2), (3,)),
        ),
    ),
    dialog=replace(MOONDREAM3.dialog, temperature=0.0),  # its answers are either right or wrong
)
