"""The prefix cache: a radix tree over the KV pages of earlier sequences; equal beginnings are computed once.

Owns the tree, and one hold in the `PagePool` on every page in it. A node is a run of pages. It is cut only
where two sequences part or a lookup ended, neither of which happens inside an image prefix, and it is evicted
whole: half an image prefix would be of no use. Like the pool it belongs to one thread.

    prefix = cache.match(root, keys)                    # what is there already
    cache.lock(prefix)                                  # now it stays; until now evict() could take it
    own = pool.allocate(...)                            # the rest of the sequence
    ...
    cache.insert(root, keys, [*prefix.pages, *own])     # the full pages, in order
    pool.free(own)                                      # all it allocated, whether the tree kept it or not
    cache.unlock(prefix)

The tree holds its own pages, and a sequence holds what it allocated. The pages of a prefix are borrowed: the
lock keeps them, and the borrower never frees them.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from kestrel_core.scheduler.pages import PagePool

# The inputs of one full page, as a tuple or anything else hashable. Equal keys must mean equal KV, and to
# Python 1 == 1.0 == True: a coordinate has to be wrapped in something that equals no token id.
PageKey = Hashable


@dataclass(slots=True, eq=False)
class _Node:
    """A run of pages below its parent's. The trunk has no pages; it and the evicted have no parent."""

    parent: "_Node | None"
    keys: list[PageKey]
    pages: list[int]
    children: dict[PageKey, "_Node"] = field(default_factory=dict)  # by the first key of each
    locks: int = 0  # on this node or below it


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """The cached pages of some leading keys. Until it is locked, the next `evict` or `clear` may end it."""

    pages: tuple[int, ...]
    _node: _Node = field(repr=False)


class PrefixCache:
    def __init__(self, pool: PagePool, enabled: bool = True) -> None:
        """Without `enabled` nothing is ever kept or found, and every prefix is empty."""
        self._pool = pool
        self.enabled = enabled
        self._trunk = _Node(None, [], [])
        # Unlocked nodes, least recently used first, children before parents: so the first is always a leaf.
        self._unlocked: OrderedDict[_Node, None] = OrderedDict()
        self._num_cached_pages = 0
        self._num_evictable_pages = 0

    @property
    def num_cached_pages(self) -> int:
        return self._num_cached_pages

    @property
    def num_evictable_pages(self) -> int:
        """Pages under no lock."""
        return self._num_evictable_pages

    def holds_image(self, root: Hashable) -> bool:
        """Whether the image prefix under `root` is cached now. Any thread may ask: it is one look-up."""
        return (root, 0) in self._trunk.children

    def match(self, root: Hashable, keys: Sequence[PageKey]) -> Prefix:
        """The longest cached run of leading pages. Counts as use; does not lock."""
        node, pages = self._descend(self._path(root, keys))
        self._touch(node)
        return Prefix(tuple(pages), node)

    def insert(self, root: Hashable, keys: Sequence[PageKey], pages: Sequence[int]) -> Prefix:
        """Keep those of `pages`, one for each key, that the tree lacks. The result has the tree's own pages.

        Where the tree has a page already, it ignores the one given; the others it shares. What the caller
        holds does not change: it still frees all it allocated, and duplicates return to the pool by that.
        """
        assert len(keys) == len(pages), f"{len(keys)} keys for {len(pages)} pages"
        path = self._path(root, keys)
        node, known = self._descend(path)
        if added := path[len(known) :]:
            node = self._grow(node, added, list(pages[len(known) :]))
            known += node.pages
        self._touch(node)
        return Prefix(tuple(known), node)

    def lock(self, prefix: Prefix) -> None:
        """Keep the pages of `prefix` from eviction until it was unlocked as often."""
        for node in self._upward(prefix._node):
            if node.locks == 0:
                del self._unlocked[node]
                self._num_evictable_pages -= len(node.pages)
            node.locks += 1

    def unlock(self, prefix: Prefix) -> None:
        """Take one lock back. Counts as use: the pages were in use until now."""
        for node in self._upward(prefix._node):
            assert node.locks > 0, "prefix unlocked once too often"
            node.locks -= 1
            if node.locks == 0:
                self._num_evictable_pages += len(node.pages)
        self._touch(prefix._node)

    def evict(self, count: int) -> int:
        """Free at least `count` pages, or all that are not locked: whole runs, oldest first. Say how many."""
        # Measured at the pool: a page that a sequence still holds as well leaves the tree but frees nothing.
        before = self._pool.num_free
        while self._unlocked and self._pool.num_free - before < count:
            self._drop_oldest()
        return self._pool.num_free - before

    def clear(self) -> None:
        """Drop all that is not locked."""
        while self._unlocked:
            self._drop_oldest()

    def check(self) -> None:
        """Raise if tree, order, counts and pool do not agree. For tests and idle moments."""
        age = {node: at for at, node in enumerate(self._unlocked)}
        nodes = [self._trunk]
        for node in nodes:  # grows while it is walked
            locks_below = sum(child.locks for child in node.children.values())
            assert node is self._trunk or node.locks >= locks_below, "a lock skips a parent"
            for first, child in node.children.items():
                assert child.parent is node and child.keys[0] == first, "a child is filed wrongly"
                assert len(child.keys) == len(child.pages) > 0, "a run without a page for each key"
                assert (child in age) == (child.locks == 0), "the order holds other than the unlocked"
                assert node not in age or age[child] < age[node], "a parent is older than its child"
            nodes += node.children.values()
        pages = [page for node in nodes for page in node.pages]
        assert len(set(pages)) == len(pages) == self._num_cached_pages, "a page is cached twice or miscounted"
        assert all(self._pool.num_holders(page) > 0 for page in pages), "a cached page is free"
        assert age.keys() <= set(nodes), "the order holds an evicted node"
        num_evictable = sum(len(node.pages) for node in age)
        assert num_evictable == self._num_evictable_pages, "evictable pages are miscounted"

    def _path(self, root: Hashable, keys: Sequence[PageKey]) -> list[PageKey]:
        """The keys as the tree has them: the root is part of the first, so that roots share nothing."""
        return [(root, keys[0]), *keys[1:]] if keys and self.enabled else []

    def _descend(self, path: list[PageKey]) -> tuple[_Node, list[int]]:
        """Follow `path` as far as it is cached: the node that ends exactly there, and the pages up to it.

        It may be new, cut off a longer run and in no order yet: the caller touches it.
        """
        node = self._trunk
        pages: list[int] = []
        while len(pages) < len(path) and (child := node.children.get(path[len(pages)])):
            wanted = path[len(pages) : len(pages) + len(child.keys)]
            if wanted != child.keys:
                child = self._split(child, _num_equal(wanted, child.keys))
            node = child
            pages += node.pages
        return node, pages

    def _split(self, node: _Node, count: int) -> _Node:
        """Cut the first `count` pages off into a new parent.

        `node` stays the deeper part: a `Prefix` that ends in it still does, and meets the new parent, which
        is locked as often, on its way up.
        """
        parent = node.parent
        assert parent is not None
        upper = _Node(parent, node.keys[:count], node.pages[:count], {node.keys[count]: node}, node.locks)
        parent.children[upper.keys[0]] = upper
        node.parent = upper
        del node.keys[:count], node.pages[:count]
        return upper

    def _grow(self, parent: _Node, keys: list[PageKey], pages: list[int]) -> _Node:
        self._pool.share(pages)
        self._num_cached_pages += len(pages)
        self._num_evictable_pages += len(pages)
        leaf = parent.children[keys[0]] = _Node(parent, keys, pages)
        return leaf

    def _drop_oldest(self) -> None:
        leaf, _ = self._unlocked.popitem(last=False)
        assert leaf.parent is not None and not leaf.children
        del leaf.parent.children[leaf.keys[0]]
        leaf.parent = None
        self._num_cached_pages -= len(leaf.pages)
        self._num_evictable_pages -= len(leaf.pages)
        self._pool.free(leaf.pages)

    def _touch(self, node: _Node) -> None:
        """Make the way to `node` the most recently used, deepest first: children stay before parents."""
        for used in self._upward(node):
            if used.locks == 0:
                self._unlocked[used] = None
                self._unlocked.move_to_end(used)

    def _upward(self, node: _Node) -> Iterator[_Node]:
        while node is not self._trunk:
            assert node.parent is not None, "this prefix was evicted; lock it before anything is evicted"
            yield node
            node = node.parent


def _num_equal(left: Sequence[PageKey], right: Sequence[PageKey]) -> int:
    """How many leading keys are the same in both."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))
