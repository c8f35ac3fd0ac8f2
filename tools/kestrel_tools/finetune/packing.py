"""Lessons laid into one pass of the network: pictures first, each once, then the words of all lessons.

All lessons about a picture stand behind the same prefix: each sees the prefix and itself, and its positions
continue from the prefix. So most of the work, which is the picture's, is done once for all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.batch import embed_inputs

from .lessons import Lesson, Read


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
        assert list(groups[: len(with_picture)]) == with_picture, "pictures come first"
        lengths = [[len(lesson.inputs) for lesson in group.lessons] for group in with_picture]
        bare = [[len(lesson.inputs)] for group in groups if group.picture is None for lesson in group.lessons]
        self._num_pictures = len(with_picture)
        self._num_image_tokens = len(with_picture) * prefix
        first_bare = self._num_image_tokens + sum(map(sum, lengths))
        self._behind = _Words(lengths, self._num_image_tokens, device) if lengths else None
        self._bare = _Words(bare, first_bare, device) if bare else None

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        gqa, out = q.shape[1] != k.shape[1], []
        if self._behind is not None:
            end, shape = self._num_image_tokens, (self._num_pictures, -1)
            qs, ks, vs = (part[:end].unflatten(0, shape).transpose(1, 2) for part in (q, k, v))
            mixed = F.scaled_dot_product_attention(qs, ks, vs, enable_gqa=gqa)
            out += [mixed.transpose(1, 2).flatten(0, 1), self._behind.attend(q, k, v, (ks, vs), gqa)]
        if self._bare is not None:
            out.append(self._bare.attend(q, k, v, (), gqa))
        return torch.cat(out)


class _Words:
    """The words of several groups, padded to one length so that one call computes all of them."""

    def __init__(self, groups: Sequence[Sequence[int]], first: int, device: torch.device) -> None:
        """`groups` have the lengths of their lessons; `first` is their first token."""
        longest = max(map(sum, groups))
        at = torch.zeros((len(groups), longest), dtype=torch.long)
        own = torch.eye(longest, dtype=torch.bool).repeat(len(groups), 1, 1)  # padding sees itself
        inside = torch.zeros((len(groups), longest), dtype=torch.bool)
        for row, lengths in enumerate(groups):
            count = sum(lengths)
            lesson = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
            own[row, :count, :count] = (lesson[:, None] == lesson).tril()
            at[row, :count] = torch.arange(first, first + count)
            inside[row, :count] = True
            first += count
        self._at, self._own, self._inside = at.to(device), own.to(device), inside.to(device)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, prefix: Sequence[Tensor], gqa: bool) -> Tensor:
        """`prefix`: keys and values of the groups' pictures, [groups, heads, prefix, head_dim]."""
        q, k, v = (part[self._at].transpose(1, 2) for part in (q, k, v))
        seen = self._own[:, None]
        if prefix:
            k, v = torch.cat((prefix[0], k), 2), torch.cat((prefix[1], v), 2)
            seen = F.pad(seen, (prefix[0].shape[2], 0), value=True)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=gqa)
        return mixed.transpose(1, 2)[self._inside]
