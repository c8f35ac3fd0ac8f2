"""Where the positions of a step's spans lie: the page tables end to end, as paged attention takes them, and
the cells that are written.

Page tables are long and seldom change, so the array of each slot is kept and made again only if it differs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kestrel_core.loop.step import Span
from kestrel_core.runtime.attention.protocol import Ints
from kestrel_core.runtime.staging import Arrays

CellIds = np.ndarray[Any, np.dtype[np.int64]]


class PageTables:
    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._known: dict[int, tuple[Sequence[int], Ints]] = {}

    def pack(self, spans: Sequence[Span]) -> Arrays:
        """`positions` and `cells` of every token; `indptr`, `indices` and `last_page_len` of every span."""
        size, tables = self._page_size, [self._table(span) for span in spans]
        indptr = np.zeros(len(spans) + 1, np.int32)
        np.cumsum([len(table) for table in tables], out=indptr[1:])
        return {
            "positions": np.concatenate([np.arange(span.start, span.stop) for span in spans]),
            "cells": np.concatenate([self.cells(span) for span in spans]),
            "indptr": indptr,
            "indices": np.concatenate(tables),
            "last_page_len": np.array([(span.stop - 1) % size + 1 for span in spans], np.int32),
        }

    def cells(self, span: Span) -> CellIds:
        """The cells of all positions of a span."""
        at, size = np.arange(span.start, span.stop), self._page_size
        cells: CellIds = self._table(span)[at // size] * size + at % size
        return cells

    def write(self, spans: Sequence[Span], num_rows: int, arrays: Arrays) -> int:
        """Write the same to fixed buffers, with a row and a page table for every single position.

        The remaining rows are at position 0 on page 0, which is scratch. Returns how much of `indices` is in
        use.
        """
        size, tables, starts = self._page_size, list[Ints](), list[int]()
        for span in spans:
            table = self._table(span)
            for at in range(span.start, span.stop):
                tables.append(table[: at // size + 1])
                starts.append(at)
        count = len(starts)
        arrays["positions"][:count] = starts
        arrays["cells"][:count] = [
            int(table[-1]) * size + at % size for table, at in zip(tables, starts, strict=True)
        ]
        arrays["last_page_len"][:count] = [at % size + 1 for at in starts]
        for name, scratch in (("positions", 0), ("cells", 0), ("last_page_len", 1)):
            arrays[name][count:num_rows] = scratch
        indptr, indices = arrays["indptr"], arrays["indices"]
        indptr[0] = 0
        np.cumsum([len(table) for table in tables] + [1] * (num_rows - count), out=indptr[1 : num_rows + 1])
        pages, used = int(indptr[count]), int(indptr[num_rows])
        if tables:
            np.concatenate(tables, out=indices[:pages])
        indices[pages:used] = 0
        return used

    def _table(self, span: Span) -> Ints:
        """The pages of its sequence, up to its stop."""
        pages, known = span.sequence.pages, self._known.get(span.slot)
        if known is None or known[0] != pages:
            known = list(pages), np.array(pages, np.int32)  # a copy, since the scheduler changes its own list
            self._known[span.slot] = known
        return known[1][: -(-span.stop // self._page_size)]
