import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.preprocessing.sentences import positional_segments


def story(n):
    return [f"s{i}." for i in range(n)]


def sizes(n, *ratios, rounding="down"):
    return [len(part.split()) for part in positional_segments(story(n), *ratios, rounding=rounding)]


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (3, [1, 1, 1]),
        (4, [1, 2, 1]),
        (5, [1, 2, 2]),
        (6, [1, 3, 2]),
        (7, [1, 4, 2]),
        (8, [2, 4, 2]),
        (100, [25, 50, 25]),
    ],
)
def test_segments_are_a_quarter_a_half_and_a_quarter(n, expected):
    assert sizes(n) == expected


@pytest.mark.parametrize("n", range(3, 41))
def test_symmetric_rounding_gives_equal_quarters(n):
    quarter = max(1, n // 4)
    assert sizes(n, rounding="symmetric") == [quarter, n - 2 * quarter, quarter]
    if n % 4 == 0:
        assert sizes(n) == sizes(n, rounding="symmetric")


def test_ten_sentences_are_split_in_two_ways():
    assert sizes(10) == [2, 5, 3]
    assert sizes(10, rounding="symmetric") == [2, 6, 2]

    first, middle, last = positional_segments(story(10), rounding="symmetric")
    assert first == "s0. s1."
    assert last == "s8. s9."
    assert middle == "s2. s3. s4. s5. s6. s7."


@pytest.mark.parametrize("rounding", ["down", "symmetric"])
@given(n=st.integers(3, 200), ratios=st.tuples(*[st.floats(0.01, 5)] * 3))
def test_segments_follow_any_ratios(n, ratios, rounding):
    found = sizes(n, ratios, rounding=rounding)
    shares = [n * ratio / sum(ratios) for ratio in ratios]
    assert sum(found) == n
    assert min(found) >= 1

    if min(shares) >= 1:
        limit = 1 if rounding == "down" else 2  # the middle takes what both others lose
        assert all(abs(size - share) <= limit + 1e-6 for size, share in zip(found, shares, strict=True))


@pytest.mark.parametrize(
    ("n", "ratios", "expected"),
    [
        (3, (98, 1, 1), [1, 1, 1]),
        (6, (98, 1, 1), [4, 1, 1]),
        (6, (1, 98, 1), [1, 4, 1]),
        (6, (1, 1, 98), [1, 1, 4]),
        (3, (1, 1, 98), [1, 1, 1]),
        (6, (1, 1, 1e-12), [3, 2, 1]),
    ],
)
def test_no_segment_is_empty(n, ratios, expected):
    assert sizes(n, ratios) == expected
    assert min(sizes(n, ratios, rounding="symmetric")) >= 1


def test_no_sentences_and_invalid_ratios_are_refused():
    with pytest.raises(ValueError, match="without a sentence"):
        positional_segments([])
    for ratios in [(0.5, 0.5, 0.0), (0.5, -0.1, 0.6), (math.nan, 1, 1), (1, 1)]:
        with pytest.raises(ValueError, match="three numbers above 0"):
            positional_segments(story(9), ratios)
