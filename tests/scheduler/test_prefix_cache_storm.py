"""The prefix cache against a reference without a tree, over random acts in any order."""

import random
from collections import Counter

import pytest

from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import Prefix, PrefixCache

Path = tuple[object, ...]  # the root, then keys


class Reference:
    """The cache without a tree: a page for each path, when each was last used, and where runs were cut."""

    def __init__(self) -> None:
        self.page: dict[Path, int] = {}
        self.used: dict[Path, int] = {}
        self.cuts: set[Path] = set()
        self.locks: Counter[Path] = Counter()
        self.now = 0

    def match(self, path: Path) -> Path:
        known = max((cut for cut in pieces(path) if cut in self.page), key=len, default=path[:1])
        self.cuts.add(known)
        self.touch(known)
        return known

    def insert(self, path: Path, pages: list[int]) -> None:
        self.match(path)
        for cut, page in zip(pieces(path), pages, strict=True):
            self.page.setdefault(cut, page)
        self.cuts.add(path)
        self.touch(path)

    def touch(self, path: Path) -> None:
        self.now += 1
        self.used.update((cut, self.now) for cut in pieces(path) if not self.is_locked(cut))

    def is_locked(self, path: Path) -> bool:
        return any(path == locked[: len(path)] for locked in self.locks.elements())

    def evict(self, count: int) -> int:
        num_before = len(self.page)
        while num_before - len(self.page) < count:
            inner = {path[:-1] for path in self.page}
            leaves = [path for path in self.page if path not in inner and not self.is_locked(path)]
            if not leaves:
                break
            path = min(leaves, key=self.used.__getitem__)
            self.cuts.discard(path)
            while path in self.page and path not in self.cuts:
                del self.page[path]
                path = path[:-1]
        return num_before - len(self.page)

    def pages(self, path: Path) -> tuple[int, ...]:
        return tuple(self.page[cut] for cut in pieces(path))

    @property
    def num_evictable(self) -> int:
        return sum(not self.is_locked(path) for path in self.page)


def pieces(path: Path) -> list[Path]:
    return [path[:stop] for stop in range(2, len(path) + 1)]


@pytest.mark.parametrize("seed", range(30))
def test_it_agrees_with_the_reference_whatever_the_order(seed: int) -> None:
    rng = random.Random(seed)
    pool = PagePool(rng.choice([12, 30, 60]))
    cache, reference = PrefixCache(pool), Reference()
    locked: list[tuple[Prefix, Path]] = []
    for _ in range(600):
        act = rng.choices(["match", "lock", "unlock", "insert", "evict", "clear"], [4, 3, 3, 8, 2, 0.1])[0]
        root = rng.choice("RS")
        keys = "".join(rng.choices("ab", k=rng.randint(0, 7)))
        path: Path = (root, *keys)
        if act in ("match", "lock"):
            prefix, known = cache.match(root, keys), reference.match(path)
            assert prefix.pages == reference.pages(known)
            if act == "lock" and len(locked) < 5:
                cache.lock(prefix)
                reference.locks[known] += 1
                locked.append((prefix, known))
        elif act == "unlock" and locked:
            prefix, known = locked.pop(rng.randrange(len(locked)))
            assert prefix.pages == reference.pages(known), "a locked page changed"
            cache.unlock(prefix)
            reference.locks[known] -= 1
            reference.touch(known)
        elif act == "insert":
            need = len(keys) - pool.num_free
            assert cache.evict(need) == reference.evict(need)
            if (pages := pool.allocate(len(keys))) is not None:
                reference.insert(path, pages)
                assert cache.insert(root, keys, pages).pages == reference.pages(path)
                pool.free(pages)
        elif act == "evict":
            count = rng.randint(0, 6)
            assert cache.evict(count) == reference.evict(count)
        elif act == "clear":
            cache.clear()
            reference.evict(pool.num_pages)
        pool.check()
        cache.check()
        assert cache.num_cached_pages == len(reference.page) == pool.num_pages - 1 - pool.num_free
        assert cache.num_evictable_pages == reference.num_evictable
    for prefix, _ in locked:
        cache.unlock(prefix)
    cache.clear()
    cache.check()
    assert pool.num_free == pool.num_pages - 1
