"""Segments of a story by position: its beginning for the theme, its middle for the action, its end for the outcome."""

import math
from collections.abc import Sequence


def positional_segments(
    sentences: Sequence[str], ratios: tuple[float, float, float] = (0.25, 0.5, 0.25)
) -> tuple[str, str, str]:
    """Cut a story into theme, action and outcome: its first quarter of sentences, the middle half, the last quarter.

    Of n sentences the action begins at sentence floor(n / 4) and the outcome at floor(3 n / 4), counted from 0. Each
    segment holds at least one sentence. From three sentences on, each is in one segment. A story of two gives the first
    to the theme, the second to the outcome and both to the action; a story of one gives it to all three.

    Source: Mendel292, section 2.6, which does not say how it rounds.

    Returns:
        The three segments, sentences joined by a space.

    Raises:
        ValueError: if there is no sentence, or a ratio is not a number above 0.

    >>> positional_segments(["A king fell ill.", "His sons rode out.", "They met a fox.", "All came home."])
    ('A king fell ill.', 'His sons rode out. They met a fox.', 'All came home.')
    """
    if not sentences:
        raise ValueError("a story without a sentence has no theme, action and outcome")
    if len(ratios) != 3 or not all(math.isfinite(ratio) and ratio > 0 for ratio in ratios):
        raise ValueError(f"ratios of theme, action and outcome must be three numbers above 0, not {ratios}")
    n = len(sentences)
    if n < 3:
        return sentences[0], " ".join(sentences), sentences[-1]
    # 0.29 of 100 is 28.999999999999996 in floating point: hence the 1e-9.
    action = min(max(math.floor(n * ratios[0] / sum(ratios) + 1e-9), 1), n - 2)
    outcome = min(max(math.floor(n * (ratios[0] + ratios[1]) / sum(ratios) + 1e-9), action + 1), n - 1)
    return " ".join(sentences[:action]), " ".join(sentences[action:outcome]), " ".join(sentences[outcome:])
