"""The prefix cache: what it finds, what it keeps, what it lets go first. Keys are letters, one a page."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from kestrel_core.scheduler.pages import PagePool
from kestrel_core.scheduler.prefix_cache import Prefix, PrefixCache

ROOT = ("no adapter", "no image")


def make_cache(num_pages: int = 100) -> tuple[PagePool, PrefixCache]:
    pool = PagePool(num_pages)
    return pool, PrefixCache(pool)


def keep(pool: PagePool, cache: PrefixCache, keys: str, root: object = ROOT) -> Prefix:
    """What a sequence does that found nothing: allocate everything, insert it, free everything."""
    pages = pool.allocate(len(keys))
    assert pages is not None
    prefix = cache.insert(root, keys, pages)
    pool.free(pages)
    pool.check()
    cache.check()
    return prefix


def found(cache: PrefixCache, keys: str, root: object = ROOT) -> int:
    num_pages = len(cache.match(root, keys).pages)
    cache.check()
    return num_pages


def test_nothing_is_found_in_an_empty_cache() -> None:
    _, cache = make_cache()
    assert cache.match(ROOT, "abc").pages == ()
    assert cache.match(ROOT, "").pages == ()


def test_the_longest_cached_run_is_found() -> None:
    pool, cache = make_cache()
    pages = keep(pool, cache, "abcd").pages
    assert cache.match(ROOT, "abcd").pages == pages
    assert cache.match(ROOT, "abcdef").pages == pages
    assert cache.match(ROOT, "abxd").pages == pages[:2]
    assert cache.match(ROOT, "ab").pages == pages[:2]
    assert cache.match(ROOT, "bcd").pages == ()
    cache.check()


def test_sequences_that_part_share_the_pages_before() -> None:
    pool, cache = make_cache()
    first = keep(pool, cache, "abcd").pages
    second = keep(pool, cache, "abxy").pages
    assert second[:2] == first[:2]
    assert cache.num_cached_pages == 6
    assert cache.match(ROOT, "abcd").pages == first
    assert cache.match(ROOT, "abxy").pages == second


def test_page_keys_may_be_tuples_of_anything_hashable() -> None:
    pool, cache = make_cache()
    keys = [(1, 2, 3), (4, ("coord", 0.5), 6)]
    pages = pool.allocate(2)
    assert pages is not None
    cache.insert(ROOT, keys, pages)
    assert cache.match(ROOT, keys).pages == tuple(pages)
    assert cache.match(ROOT, [(1, 2, 3), (4, ("coord", 0.6), 6)]).pages == tuple(pages[:1])


def test_roots_share_nothing() -> None:
    pool, cache = make_cache()
    keep(pool, cache, "ab", root="cat.png")
    assert found(cache, "ab", root="dog.png") == 0
    keep(pool, cache, "ab", root="dog.png")
    assert cache.num_cached_pages == 4


def test_kept_pages_stay_when_the_sequence_frees_them() -> None:
    pool, cache = make_cache(num_pages=5)
    prefix = keep(pool, cache, "abc")
    assert pool.num_free == 1
    assert all(pool.num_holders(page) == 1 for page in prefix.pages)


def test_duplicates_return_to_the_pool_when_the_sequence_frees_them() -> None:
    pool, cache = make_cache(num_pages=9)
    first = keep(pool, cache, "abc")
    second = keep(pool, cache, "abcd")
    assert second.pages[:3] == first.pages
    assert cache.num_cached_pages == 4
    assert pool.num_free == 4


def test_a_sequence_inserts_borrowed_and_own_pages_and_frees_its_own() -> None:
    pool, cache = make_cache(num_pages=9)
    keep(pool, cache, "ab")
    prefix = cache.match(ROOT, "abcd")
    cache.lock(prefix)
    own = pool.allocate(2)
    assert own is not None
    grown = cache.insert(ROOT, "abcd", [*prefix.pages, *own])
    pool.free(own)
    cache.unlock(prefix)
    assert grown.pages == (*prefix.pages, *own)
    assert (cache.num_cached_pages, cache.num_evictable_pages, pool.num_free) == (4, 4, 4)
    pool.check()
    cache.check()


def test_pages_nobody_holds_cannot_be_inserted() -> None:
    _, cache = make_cache()
    with pytest.raises(AssertionError, match="nobody holds it"):
        cache.insert(ROOT, "ab", [1, 2])


def test_the_least_recently_used_run_is_evicted_first() -> None:
    pool, cache = make_cache()
    for keys in ("aa", "bb", "cc"):
        keep(pool, cache, keys)
    found(cache, "aa")
    assert cache.evict(1) == 2
    cache.check()
    assert (found(cache, "bb"), found(cache, "cc"), found(cache, "aa")) == (0, 2, 2)


def test_inserting_what_is_known_counts_as_use() -> None:
    pool, cache = make_cache()
    for keys in ("aa", "bb", "aa"):
        keep(pool, cache, keys)
    cache.evict(1)
    assert (found(cache, "aa"), found(cache, "bb")) == (2, 0)


def test_unlocking_counts_as_use() -> None:
    pool, cache = make_cache()
    prefix = keep(pool, cache, "aa")
    cache.lock(prefix)
    keep(pool, cache, "bb")
    cache.unlock(prefix)
    cache.evict(1)
    assert (found(cache, "aa"), found(cache, "bb")) == (2, 0)


def test_leaves_go_before_what_they_grow_on() -> None:
    pool, cache = make_cache()
    keep(pool, cache, "abcd")
    keep(pool, cache, "abxy")
    assert cache.evict(1) == 2
    assert (found(cache, "abcd"), found(cache, "abxy")) == (2, 4)
    assert cache.evict(3) == 4
    assert found(cache, "ab") == 0


def test_an_image_prefix_goes_whole_or_not_at_all() -> None:
    pool, cache = make_cache()
    keep(pool, cache, "IIIIIq", root="cat.png")
    assert cache.evict(1) == 6
    keep(pool, cache, "IIIIIq", root="cat.png")
    keep(pool, cache, "IIIIIr", root="cat.png")
    assert [cache.evict(1) for _ in range(4)] == [1, 1, 5, 0]


def test_eviction_says_what_it_freed_and_leaves_no_root_behind() -> None:
    pool, cache = make_cache(num_pages=9)
    keep(pool, cache, "abc", root="cat.png")
    keep(pool, cache, "de", root="dog.png")
    assert cache.evict(0) == 0
    assert cache.evict(100) == 5
    assert (cache.num_cached_pages, pool.num_free) == (0, 8)
    assert not cache._trunk.children and not cache._unlocked


def test_a_page_its_sequence_still_holds_is_not_counted_as_freed() -> None:
    pool, cache = make_cache()
    pages = pool.allocate(2)
    assert pages is not None
    cache.insert(ROOT, "ab", pages)
    keep(pool, cache, "c")
    assert cache.evict(1) == 1
    assert cache.num_cached_pages == 0
    assert all(pool.num_holders(page) == 1 for page in pages)


def test_a_locked_prefix_is_not_evicted_and_not_cleared() -> None:
    pool, cache = make_cache()
    prefix = keep(pool, cache, "ab")
    keep(pool, cache, "abcd")
    cache.lock(prefix)
    assert (cache.num_cached_pages, cache.num_evictable_pages) == (4, 2)
    assert cache.evict(100) == 2
    cache.clear()
    cache.check()
    assert found(cache, "abcd") == 2
    cache.unlock(prefix)
    assert cache.evict(100) == 2


def test_locks_count() -> None:
    pool, cache = make_cache()
    prefix = keep(pool, cache, "ab")
    cache.lock(prefix)
    cache.lock(cache.match(ROOT, "ab"))
    cache.unlock(prefix)
    assert cache.evict(1) == 0
    cache.unlock(prefix)
    assert cache.evict(1) == 2


def test_a_lock_keeps_no_more_than_its_prefix() -> None:
    # The only running sequence must be able to evict the rest of the run it matched, or it waits for itself.
    pool, cache = make_cache()
    keep(pool, cache, "abcdef")
    cache.lock(cache.match(ROOT, "abxx"))
    assert cache.num_evictable_pages == 4
    assert cache.evict(1) == 4


def test_a_locked_run_may_be_split_and_is_unlocked_in_both_parts() -> None:
    pool, cache = make_cache()
    prefix = keep(pool, cache, "abcd")
    cache.lock(prefix)
    shorter = cache.match(ROOT, "abx")
    cache.lock(shorter)
    keep(pool, cache, "axxx")
    assert cache.evict(100) == 3
    assert cache.num_evictable_pages == 0
    cache.unlock(prefix)
    cache.check()
    assert (cache.evict(100), found(cache, "abcd")) == (2, 2)
    cache.unlock(shorter)
    cache.check()
    assert cache.evict(100) == 2


def test_a_prefix_matched_before_a_split_can_be_locked_after_it() -> None:
    pool, cache = make_cache()
    keep(pool, cache, "abcd")
    prefix = cache.match(ROOT, "abcd")
    keep(pool, cache, "ax")
    cache.lock(prefix)
    cache.check()
    assert cache.evict(100) == 1
    assert cache.match(ROOT, "abcd").pages == prefix.pages


def test_the_empty_prefix_locks_nothing() -> None:
    pool, cache = make_cache()
    prefix = cache.match(ROOT, "ab")
    cache.lock(prefix)
    keep(pool, cache, "ab")
    assert cache.evict(1) == 2
    cache.unlock(prefix)
    cache.check()


def test_an_evicted_prefix_cannot_be_locked() -> None:
    pool, cache = make_cache()
    prefix = keep(pool, cache, "ab")
    cache.evict(1)
    keep(pool, cache, "ab")
    with pytest.raises(AssertionError, match="was evicted"):
        cache.lock(prefix)


def test_a_prefix_cannot_be_unlocked_once_too_often() -> None:
    pool, cache = make_cache()
    prefix = keep(pool, cache, "ab")
    with pytest.raises(AssertionError, match="once too often"):
        cache.unlock(prefix)


def test_switched_off_it_keeps_and_finds_nothing() -> None:
    pool = PagePool(9)
    cache = PrefixCache(pool, enabled=False)
    prefix = keep(pool, cache, "ab")
    cache.lock(prefix)
    assert (prefix.pages, found(cache, "ab"), cache.num_cached_pages) == ((), 0, 0)
    cache.unlock(prefix)
    assert pool.num_free == 8


def num_lines_run(act: Callable[[], object]) -> int:
    """Of the scheduler's own: a collection of garbage may come at any time, and others' code with it."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        if not frame.f_globals.get("__name__", "").startswith("kestrel_core.scheduler."):
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return lines


def test_evicting_is_no_more_work_in_a_large_tree() -> None:
    work = []
    for num_leaves in (10, 5000):
        pool, cache = make_cache(num_pages=2 + num_leaves)
        for leaf in range(num_leaves):
            pages = pool.allocate(2 if leaf == 0 else 1)
            assert pages is not None
            shared = cache.match(ROOT, ["trunk"]).pages
            cache.insert(ROOT, ["trunk", leaf], [*shared, *pages])
            pool.free(pages)
        work.append(num_lines_run(partial(cache.evict, 3)))
        assert cache.num_cached_pages == num_leaves - 2
    assert work[0] == work[1]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("lost page", "a cached page is free"),
        ("cached twice", "cached twice"),
        ("skipped lock", "a lock skips a parent"),
        ("wrong order", "a parent is older"),
        ("miscounted", "evictable pages are miscounted"),
    ],
)
def test_check_sees_a_tree_that_does_not_add_up(damage: str, complaint: str) -> None:
    pool, cache = make_cache()
    node = keep(pool, cache, "ab")._node
    leaf = keep(pool, cache, "abcd")._node
    if damage == "lost page":
        pool.free(leaf.pages)
    elif damage == "cached twice":
        leaf.pages[0] = node.pages[0]
    elif damage == "skipped lock":
        cache.lock(keep(pool, cache, "abcd"))
        node.locks = 0
        cache._unlocked[node] = None
    elif damage == "wrong order":
        cache._unlocked.move_to_end(leaf)
    else:
        cache._num_evictable_pages += 1
    with pytest.raises(AssertionError, match=complaint):
        cache.check()
