"""What the prefix cache knows a sequence's pages by."""

from collections.abc import Hashable

from kestrel_core.loop.sequence import Sequence


def page_keys(sequence: Sequence, page_size: int, num_pages: int) -> list[Hashable]:
    """One key for each page. An image prefix ends with a page, and is the same for all of one root.

    The salt of the text is a part of the first page behind it, and so of every path that goes on there.
    """
    of_image = sequence.image_length // page_size
    starts = range(0, (num_pages - of_image) * page_size, page_size)
    of_text = (tuple(sequence.inputs[start : start + page_size]) for start in starts)
    keys: list[Hashable] = [*range(min(of_image, num_pages)), *of_text]
    if sequence.text_salt and num_pages > of_image:
        keys[of_image] = (sequence.text_salt, keys[of_image])
    return keys
