"""Overlap of two sets of stories, pairs and triples."""

from pathlib import Path

import pytest

from narrlit.data import leakage
from narrlit.data.leakage import Overlap, overlap
from narrlit.data.readers import read_stories, read_triples


def shared(one, other):
    found = overlap(one, other)
    return found.shared_stories, found.shared_pairs, found.shared_triples


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (("x", "a", "b"), (3, 2, 1)),
        (("x", "b", "a"), (3, 2, 1)),  # candidates swapped
        (("a", "x", "b"), (3, 1, 0)),  # the pair x-a, whichever is the anchor; not a-b
        (("a", "b", "y"), (2, 0, 0)),  # the candidates are no pair of the first set
        (("x", "a", "y"), (2, 1, 0)),
        (("x", "a", "b", "c"), (3, 2, 1)),  # a triple is made of the first two candidates
        (("x", "c", "a", "b"), (3, 2, 0)),
        (("x", "a"), (2, 1, 0)),
        (("x",), (1, 0, 0)),
        (("u", "v", "w"), (0, 0, 0)),
    ],
)
def test_what_is_shared(other, expected):
    assert shared([("x", "a", "b")], [other]) == expected
    assert shared([other], [("x", "a", "b")]) == expected


def test_case_and_white_space_do_not_matter_but_punctuation_does():
    assert shared([("One  story.\n", "Straße")], [(" one story.", "STRASSE")]) == (2, 1, 0)
    assert shared([("one story.",)], [("one story",)]) == (0, 0, 0)


def test_everything_counts_once():
    one = [("x", "a", "b"), ("X", "b", "a"), ("x", "a", "c")]
    found = overlap(iter(one), iter([*one, ("y", "z")]))
    assert found == Overlap(4, 3, 2, stories=(4, 6), pairs=(3, 4), triples=(2, 2))


def test_each_text_is_normalised_once(monkeypatch):
    seen = []
    monkeypatch.setattr(leakage, "normal_text", lambda text: seen.append(text) or text.lower())
    assert shared([("x", "a", "b"), ("x", "b", "a")], [("X", "a", "b")]) == (3, 2, 1)
    assert sorted(seen) == ["X", "a", "b", "x"]


def test_nothing_to_compare():
    assert overlap([], [("x", "a", "b")]) == Overlap(0, 0, 0, stories=(0, 3), pairs=(0, 2), triples=(0, 1))


def test_describe():
    line = Overlap(164, 1, 0, stories=(479, 848), pairs=(400, 792), triples=(200, 400)).describe()
    assert line == "shared: 164 stories (of 479 and 848), 1 pair (of 400 and 792), 0 triples (of 200 and 400)"


REAL = Path(__file__).parents[2].parent / "shared/data/nsnrl"


@pytest.mark.skipif(not REAL.is_dir(), reason="the task's data is not beside the checkout")
def test_real_stories_of_dev_stand_in_the_test_set():
    dev = [triple.texts for triple in read_triples(REAL / "dev/dev_track_a.jsonl").records]
    test = [triple.texts for triple in read_triples(REAL / "test/test_track_a.jsonl").records]
    assert overlap(dev, test) == Overlap(164, 4, 0, stories=(479, 848), pairs=(400, 792), triples=(200, 400))
    stories = [(story.text,) for story in read_stories(REAL / "dev/dev_track_b.jsonl").records]
    assert overlap(stories, test).shared_stories == 164
