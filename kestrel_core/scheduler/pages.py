"""The pool of KV pages: which are free, and how many holders each of the others has.

Owns page numbers only; the tensors behind them live in `runtime.kv_cache`. A page is freed as often as it
was allocated or shared, and returns to the pool with its last holder.
"""

from collections.abc import Iterable


class PagePool:
    """Pages 1 to `num_pages - 1`. Page 0 is scratch: padding writes there, so it is never held."""

    def __init__(self, num_pages: int) -> None:
        assert num_pages > 0, "page 0 is always there"
        self._holders = [0] * num_pages
        self._free = list(range(num_pages - 1, 0, -1))

    @property
    def num_pages(self) -> int:
        """All pages including the scratch page, which the KV tensors have room for too."""
        return len(self._holders)

    @property
    def num_free(self) -> int:
        return len(self._free)

    def num_holders(self, page: int) -> int:
        return self._holders[page]

    def allocate(self, count: int) -> list[int] | None:
        """Take `count` pages, or none of them when fewer are free."""
        assert count >= 0, f"cannot allocate {count} pages"
        rest = len(self._free) - count
        if rest < 0:
            return None
        pages = self._free[rest:]
        del self._free[rest:]
        pages.reverse()
        for page in pages:
            self._holders[page] = 1
        return pages

    def share(self, pages: Iterable[int]) -> None:
        """Add one holder to pages that are held already."""
        for page in pages:
            assert self._holders[page] > 0, f"page {page} shared while nobody holds it"
            self._holders[page] += 1

    def free(self, pages: Iterable[int]) -> None:
        for page in pages:
            assert self._holders[page] > 0, f"page {page} freed once too often"
            self._holders[page] -= 1
            if self._holders[page] == 0:
                self._free.append(page)

    def check(self) -> None:
        """Raise if a page is both free and held, or neither. For tests and idle moments."""
        assert self._holders[0] == 0, "the scratch page is held"
        assert min(self._holders) == 0, "a page has fewer holders than none"
        assert sorted(self._free) == [page for page, held in enumerate(self._holders) if page and not held]
