"""The page pool: nothing is lost, nothing is handed out twice."""

import random

import pytest

from kestrel_core.scheduler.pages import PagePool


def test_every_page_but_the_scratch_page_can_be_allocated_once() -> None:
    pool = PagePool(9)
    assert (pool.num_pages, pool.num_free) == (9, 8)
    assert sorted(pool.allocate(8) or []) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert pool.num_free == 0


def test_a_fresh_pool_hands_out_neighbours_in_order() -> None:
    pool = PagePool(9)
    assert pool.allocate(3) == [1, 2, 3]
    assert pool.allocate(2) == [4, 5]


def test_an_allocation_that_does_not_fit_takes_nothing() -> None:
    pool = PagePool(4)
    assert pool.allocate(4) is None
    assert pool.num_free == 3
    pool.check()


def test_allocating_no_pages_always_succeeds() -> None:
    pool = PagePool(1)
    assert pool.allocate(0) == []
    assert pool.allocate(1) is None
    pool.check()


def test_a_shared_page_returns_with_its_last_holder() -> None:
    pool = PagePool(3)
    pages = pool.allocate(2)
    assert pages is not None
    pool.share(pages[:1])
    pool.free(pages)
    assert pool.num_free == 1
    assert [pool.num_holders(page) for page in pages] == [1, 0]
    pool.free(pages[:1])
    assert pool.num_free == 2
    pool.check()


def test_a_page_cannot_be_freed_once_too_often() -> None:
    pool = PagePool(3)
    pages = pool.allocate(1)
    assert pages is not None
    pool.free(pages)
    with pytest.raises(AssertionError, match="once too often"):
        pool.free(pages)


def test_a_page_nobody_holds_cannot_be_shared() -> None:
    with pytest.raises(AssertionError, match="nobody holds it"):
        PagePool(3).share([1])


def test_the_scratch_page_cannot_be_freed_or_shared() -> None:
    with pytest.raises(AssertionError):
        PagePool(3).free([0])
    with pytest.raises(AssertionError):
        PagePool(3).share([0])


@pytest.mark.parametrize(
    ("holders", "free"),
    [
        ([0, 1, 0], [2, 1]),  # page 1 held and free
        ([0, 0, 0], [1]),  # page 2 neither
        ([0, 0, 0], [1, 2, 2]),  # page 2 free twice
        ([1, 0, 0], [1, 2]),  # scratch held
        ([0, -1, 0], [2]),  # page 1 owed a holder
    ],
)
def test_check_sees_books_that_do_not_add_up(holders: list[int], free: list[int]) -> None:
    pool = PagePool(3)
    pool._holders, pool._free = holders, free
    with pytest.raises(AssertionError):
        pool.check()


@pytest.mark.parametrize("seed", range(20))
def test_no_page_is_lost_whatever_the_order(seed: int) -> None:
    rng, pool = random.Random(seed), PagePool(9)
    held: list[list[int]] = []
    for _ in range(500):
        draw = rng.random()
        if draw < 0.4 and (pages := pool.allocate(rng.randint(1, 4))):
            assert not any(set(pages) & set(others) for others in held), "handed out while held"
            held.append(pages)
        elif draw < 0.6 and held:
            pages = rng.sample(others := rng.choice(held), rng.randint(1, len(others)))
            pool.share(pages)
            held.append(pages)
        elif held:
            pool.free(held.pop(rng.randrange(len(held))))
        pool.check()
        assert pool.num_free == 8 - len({page for pages in held for page in pages})
    for pages in held:
        pool.free(pages)
    assert pool.num_free == 8
