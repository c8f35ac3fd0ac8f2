import random

import pytest
import torch
from random_adapters import MAX_ADAPTERS, empty_stacks
from tiny import tiny_config

from kestrel_core.loop.step import Running, Span
from kestrel_core.moondream.lora import AdapterRows
from kestrel_core.runtime.adapters.rows import TiledRows, plain_rows, tile_size
from kestrel_core.runtime.staging import send

MAX_TOKENS = 600


@pytest.fixture(scope="module")
def tiled() -> TiledRows:
    return TiledRows(empty_stacks(tiny_config(2).text), MAX_TOKENS)


def spans(*lengths_and_adapters: tuple[int, int]) -> list[Span]:
    return [
        Span(Running(1, [], adapter=adapter), 7, 7 + length, None) for length, adapter in lengths_and_adapters
    ]


def gathered(rows: AdapterRows) -> dict[int, list[list[int]]]:
    """The tokens of each tile, by adapter. Padding is looked at too."""
    assert rows.order is not None and rows.tiles is not None
    found: dict[int, list[list[int]]] = {}
    for adapter, first, stop in rows.tiles.tolist():
        if adapter == 0:
            assert (first, stop) == (0, 0)
            continue
        assert 0 < stop - first <= rows.tile_size
        found.setdefault(adapter, []).append(rows.order[first:stop].tolist())
    return found


def test_tokens_are_gathered_by_adapter_in_their_order(tiled: TiledRows) -> None:
    tiled.stage(spans((2, 3), (1, 0), (18, 1), (1, 3), (2, 0)), 30)
    rows = tiled.staged(30)
    assert rows.of_token.tolist() == [3, 3, 0, *[1] * 18, 3, *[0] * 8]
    assert rows.tiles is not None and len(rows.tiles) == 2 + MAX_ADAPTERS
    assert gathered(rows) == {1: [list(range(3, 19)), [19, 20]], 3: [[0, 1, 21]]}


def test_a_step_leaves_nothing_of_the_one_before_it(tiled: TiledRows) -> None:
    tiled.stage(spans((600, 2)), 600)
    tiled.stage(spans((500, 1), (100, 3)), 600)
    tiled.stage(spans((1, 2)), 8)
    assert gathered(tiled.staged(8)) == {2: [[0]]}
    assert tiled.staged(8).of_token.tolist() == [2, *[0] * 7]
    tiled.stage([], 600)
    assert gathered(tiled.staged(600)) == {} and not tiled.staged(600).of_token.any()


def test_tiles_of_large_steps_are_larger(tiled: TiledRows) -> None:
    assert (tile_size(256), tile_size(257)) == (16, 64)
    assert tiled.staged(256).tile_size == 16 and tiled.staged(257).tile_size == 64


@pytest.mark.parametrize("seed", range(20))
def test_every_token_with_an_adapter_is_in_one_tile_of_it(tiled: TiledRows, seed: int) -> None:
    """At fixed places and sent; the number of tiles depends on the number of tokens alone."""
    rng = random.Random(seed)
    step, left = [], rng.randint(1, MAX_TOKENS)
    num_tokens = rng.randint(left, MAX_TOKENS)
    while left:
        length = min(left, rng.choice((1, 1, 5, 16, 17, 70)))
        step += spans((length, rng.randint(0, MAX_ADAPTERS)))
        left -= length
    tiled.stage(step, num_tokens)
    sent = send(tiled.pack(step), torch.device("cpu"))
    total = sum(span.stop - span.start for span in step)
    for rows, size in ((tiled.staged(num_tokens), num_tokens), (tiled.rows(sent, total), total)):
        assert rows.of_token.dtype == torch.int32 and len(rows.of_token) == size
        assert rows.tiles is not None and len(rows.tiles) == -(-size // rows.tile_size) + MAX_ADAPTERS
        found = {
            adapter: [token for tile in tiles for token in tile] for adapter, tiles in gathered(rows).items()
        }
        expected = [(int(index), token) for token, index in enumerate(rows.of_token) if index]
        assert found == {
            adapter: [token for index, token in expected if index == adapter]
            for adapter in {index for index, _ in expected}
        }
        assert rows.of_token.tolist()[:total] == [
            span.sequence.adapter for span in step for _ in range(span.start, span.stop)
        ]


def test_a_step_without_adapters_has_no_rows() -> None:
    stacks = empty_stacks(tiny_config(2).text)
    assert plain_rows(spans((3, 0), (1, 0)), stacks) is None
    assert plain_rows(spans((3, 0)), None) is None
    rows = plain_rows(spans((2, 0), (1, 2)), stacks)
    assert rows is not None and rows.of_token.tolist() == [0, 0, 2] and rows.blocks is stacks.blocks
