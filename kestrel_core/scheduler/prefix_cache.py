"""The prefix cache: a radix tree over the KV pages of earlier sequences; equal beginnings are computed once.

Owns the tree, and holds every page in it once in the `PagePool`. A node is a run of pages. A run is cut only
where two sequences differ or a lookup ended; neither happens inside an image prefix. It is evicted whole,
since half an image prefix would be useless. Like the pool, the cache belongs to one thread.

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
    """A run of pages that follows its parent's. The trunk has none. It and evicted nodes have no parent."""

    parent: "_Node | None"
    keys: list[PageKey]
    pages: list[int]
    children: dict[PageKey, "_Node"] = field(default_factory=dict)  # by the first key of each
    locks: int = 0  # on this node or below it


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """The cached pages of some leading keys. Unless it is locked, `evict` or `clear` may make it invalid."""

    pages: tuple[int, ...]
    _node: _Node = field(repr=False)


class PrefixCache:
    def __init__(self, pool: PagePool, enabled: bool = True) -> None:
        """If it is not `enabled`, it keeps nothing, and every prefix is empty."""
        self._pool = pool
        self.enabled = enabled
        self._trunk = _Node(None, [], [])
        # Unlocked nodes, least recently used first, children before parents. So the first is always a leaf.
        self._unlocked: OrderedDict[_Node, None] = OrderedDict()
        self._num_cached_pages = 0
        self._num_evictable_pages = 0

    @property
    def num_cached_pages(self) -> int:
        return self._num_cached_pages

    @property
    def num_evictable_pages(self) -> int:
        """Pages that are not locked."""
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
        """Keep the `pages` that the tree lacks; there is one for each key. Returns the tree's own pages.

        Where the tree has a page for a key already, the one given is ignored. What the caller holds does not
        change: it still frees all pages it allocated, and this returns the ignored ones to the pool.
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
        """Keep the pages of `prefix` from eviction until it is unlocked as often as it was locked."""
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
        """Free at least `count` pages, or all that are not locked; return how many. Oldest runs go first."""
        # Counted in the pool, because a page that a sequence still holds leaves the tree without being freed.
        before = self._pool.num_free
        while self._unlocked and self._pool.num_free - before < count:
            self._drop_oldest()
        return self._pool.num_free - before

    def clear(self) -> None:
        """Drop everything that is not locked."""
        while self._unlocked:
            self._drop_oldest()

    def check(self) -> None:
        """Raise if tree, order, counts and pool do not agree. For tests and for when the engine is idle."""
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
        """The keys as the tree stores them. The root is part of the first, so that roots share nothing."""
        return [(root, keys[0]), *keys[1:]] if keys and self.enabled else []

    def _descend(self, path: list[PageKey]) -> tuple[_Node, list[int]]:
        """Follow `path` as far as it is cached. Returns the node that ends there, and the pages up to it.

        The node may be new, split off a longer run and not yet in the order of use. The caller touches it.
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
        """Move the first `count` pages into a new parent.

        `node` remains the deeper part, so a `Prefix` that ends in it stays valid. The new parent has as many
        locks, so unlocking the prefix finds one in each of them.
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
        """Make `node` and its parents the most recently used, deepest first: children stay before parents."""
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
