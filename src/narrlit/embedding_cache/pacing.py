"""Sizes of spans of texts that are embedded and stored at once, by the time that they take."""


def next_size(size: int, done: int, seconds: float, wanted: float, fewest: int) -> int:
    """Choose the size of the next span; it grows in steps.

    Args:
        size: maximum size of the last span, in texts or words.
        done: its actual size.
        seconds: time that it took.
        wanted: time that a span should take.
        fewest: minimum size.

    >>> next_size(1000, 900, 0.1, 1.5, 200), next_size(8000, 8000, 3.0, 1.5, 200), next_size(64, 2, 1.0, 5.0, 32)
    (4000, 4000, 32)
    """
    return max(fewest, min(4 * size, round(done * wanted / max(seconds, 1e-3))))
