"""Lessons laid into one pass of the network: pictures first, each once, then the words of all lessons.

All lessons about a picture stand behind the same prefix: each sees the prefix and itself, and its positions
continue from the prefix. So most of the work, which is the picture's, is done once for all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.batch import embed_inputs

from .lessons import Lesson, Read

ALIKE = 16  # lessons whose lengths differ by less are computed together


class Group(NamedTuple):
    """Lessons that share a prefix; without a picture there is none to share."""

    picture: str | None
    lessons: tuple[Lesson, ...]


@dataclass(frozen=True, slots=True)
class Packed:
    x: Tensor  # [tokens, dim]
    positions: Tensor  # [tokens]
    attend: "PackedAttention"
    reads: Sequence[tuple[int, Read]]  # with the token that is read


def grouped(lessons: Sequence[Lesson]) -> list[Group]:
    by_picture: dict[str, list[Lesson]] = {}
    for lesson in lessons:
        if lesson.picture is not None:
            by_picture.setdefault(lesson.picture, []).append(lesson)
    bare = tuple(lesson for lesson in lessons if lesson.picture is None)
    groups = [Group(picture, tuple(found)) for picture, found in by_picture.items()]
    return [*groups, Group(None, bare)] if bare else groups


@torch.no_grad()
def pack(network: Moondream, groups: Sequence[Group], features: Callable[[str], Tensor]) -> Packed:
    """`features` gives a picture's embeddings [patches, dim]."""
    device, prefix = network.text.wte.device, network.config.image_prefix_length
    pictures = [group.picture for group in groups if group.picture is not None]
    bos = network.text.embed(torch.tensor([network.config.tokenizer.bos_id], device=device))
    rows = [part for picture in pictures for part in (bos, features(picture).to(device))]
    first = len(pictures) * prefix
    lessons = [lesson for group in groups for lesson in group.lessons]
    rows.append(embed_inputs(network, [one for lesson in lessons for one in lesson.inputs]))
    positions = [torch.arange(prefix)] * len(pictures)
    reads, token = list[tuple[int, Read]](), first
    for lesson in lessons:
        start = prefix if lesson.picture is not None else 0
        positions.append(torch.arange(start, start + len(lesson.inputs)))
        reads += [(token + read.at, read) for read in lesson.reads]
        token += len(lesson.inputs)
    return Packed(
        torch.cat(rows), torch.cat(positions).to(device), PackedAttention(groups, prefix, device), reads
    )


class PackedAttention:
    """An `Attend`: prefixes among themselves in both directions; words see their prefix and their lesson."""

    def __init__(self, groups: Sequence[Group], prefix: int, device: torch.device) -> None:
        with_picture = [group for group in groups if group.picture is not None]
        assert all(group.picture is not None for group in groups[: len(with_picture)]), "pictures come first"
        self._num_pictures = len(with_picture)
        self._num_image_tokens = len(with_picture) * prefix
        self._words = list(_alike(groups, self._num_image_tokens, device))

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        gqa, mixed = q.shape[1] != k.shape[1], torch.empty_like(q)
        prefixes: Sequence[Tensor] = ()
        if self._num_pictures:
            end, shape = self._num_image_tokens, (self._num_pictures, -1)
            qs, *prefixes = (part[:end].unflatten(0, shape).transpose(1, 2) for part in (q, k, v))
            images = F.scaled_dot_product_attention(qs, prefixes[0], prefixes[1], enable_gqa=gqa)
            mixed[:end] = images.transpose(1, 2).flatten(0, 1)
        for words in self._words:
            mixed[words.tokens] = words.attend(q, k, v, prefixes, gqa)
        return mixed


class _Words:
    """Lessons of about one length, padded to the longest, so that one call computes all of them.

    A lesson's prefix is repeated for it, which costs less than scores between lessons that no one reads.
    """

    def __init__(
        self, starts: Sequence[int], lengths: Sequence[int], pictures: Sequence[int], device: torch.device
    ) -> None:
        """`pictures` number the lessons' prefixes, where they have any."""
        ends = torch.tensor(lengths)[:, None]
        offsets = torch.arange(max(lengths))
        # Padding repeats a lesson's last token, behind it, where its own tokens do not look.
        at, inside = torch.tensor(starts)[:, None] + offsets.minimum(ends - 1), offsets < ends
        self._at, self._inside, self.tokens = at.to(device), inside.to(device), at[inside].to(device)
        self._pictures = torch.tensor(pictures, device=device) if pictures else None
        self._own = torch.ones((len(offsets), len(offsets)), dtype=torch.bool, device=device).tril()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, prefixes: Sequence[Tensor], gqa: bool) -> Tensor:
        """`prefixes`: keys and values of all pictures, [pictures, heads, prefix, head_dim] both."""
        q, k, v = (part[self._at].transpose(1, 2) for part in (q, k, v))
        seen = self._own
        if self._pictures is not None:
            k, v = (torch.cat((of[self._pictures], own), 2) for of, own in zip(prefixes, (k, v), strict=True))
            seen = F.pad(seen, (prefixes[0].shape[2], 0), value=True)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=gqa)
        return mixed.transpose(1, 2)[self._inside]


def _alike(groups: Sequence[Group], first: int, device: torch.device) -> Iterator[_Words]:
    """The lessons by their length. `first` is the first token that is no picture's."""
    found: dict[tuple[bool, int], list[tuple[int, int, int]]] = {}
    for number, group in enumerate(groups):
        for lesson in group.lessons:
            length = len(lesson.inputs)
            key = (group.picture is not None, -(-length // ALIKE))
            found.setdefault(key, []).append((first, length, number))
            first += length
    for (has_picture, _), lessons in found.items():
        starts, lengths, pictures = zip(*lessons, strict=True)
        yield _Words(starts, lengths, pictures if has_picture else (), device)
