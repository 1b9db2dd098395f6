"""Twice Told: a complete design, in which words, lengths and names tell nothing of the plot."""

import csv
import re
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest
from refusals import refused

import narrlit
from narrlit.data.readers import read_triples
from narrlit.data.twice_told import (
    CELLS,
    FOLDER,
    NUM_PLOTS,
    WORLDS,
    TwiceTold,
    further_plots,
    further_tellings,
    held_back_cells,
    held_back_plots,
    held_back_tellings,
    write_twice_told,
)
from narrlit.statistics.words import lexical_vectors

NUMBERS = {
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty"),
    *("sixty", "seventy", "eighty", "ninety", "hundred", "thousand"),
}
TITLES = {"Old", "Mother", "Aunt", "Lady", "Lord", "Princess", "Minister", "Signora", "Maestro", "Don", "Mr"}
WORD = re.compile(r"[\w']+")


@pytest.fixture(scope="module")
def corpus():
    return TwiceTold.read()


@pytest.fixture(scope="module")
def further():
    return further_tellings()


@pytest.fixture(scope="module")
def everything(corpus, further):
    return [*corpus.tellings, *corpus.changes, *further, *held_back_tellings()]


def words_of(text):
    return WORD.findall(text.lower())


def test_every_plot_is_told_once_in_every_world(corpus):
    told = Counter((telling.plot, telling.world) for telling in corpus.tellings)
    assert set(told) == {(plot.plot, world) for plot in corpus.plots for world in corpus.worlds}
    assert set(told.values()) == {1}
    assert all(plot.theme and plot.action and plot.outcome for plot in corpus.plots)


def test_changes_are_balanced_over_worlds_plots_and_aspects(corpus):
    assert set(Counter((change.world, change.changed) for change in corpus.changes).values()) == {4}
    assert set(Counter(change.plot for change in corpus.changes).values()) == {2}
    assert len({change.id for change in corpus.changes}) == 96
    assert all(change.change for change in corpus.changes)


def test_stories_are_short_and_worlds_and_plots_of_about_one_length(corpus):
    assert all(80 <= len(telling.text.split()) <= 140 for telling in [*corpus.tellings, *corpus.changes])

    lengths = np.array([len(telling.text.split()) for telling in corpus.tellings])
    for factor in ("world", "plot"):
        values = np.array([getattr(telling, factor) for telling in corpus.tellings])
        means = np.array([lengths[values == value].mean() for value in np.unique(values)])
        assert np.abs(means / lengths.mean() - 1).max() < 0.1, factor


def test_worlds_read_about_equally_easily(corpus):
    """Flesch's reading ease, with groups of vowels as syllables; a school grade is about ten points."""
    ease = defaultdict(list)
    for telling in corpus.tellings:
        words = words_of(telling.text)
        sentences = len(re.findall(r"[.!?](?:\s|$|\")", telling.text))
        syllables = sum(max(1, len(re.findall(r"[aeiouy]+", word))) for word in words)
        ease[telling.world].append(206.8 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words))

    means = [np.mean(values) for values in ease.values()]

    assert max(means) - min(means) < 20


def test_no_run_of_six_words_occurs_in_two_stories(everything):
    stories_of = defaultdict(set)
    for telling in everything:
        words = words_of(telling.text)
        for start in range(len(words) - 5):
            stories_of[tuple(words[start : start + 6])].add(telling.id)

    assert [run for run, stories in stories_of.items() if len(stories) > 1] == []


def test_names_and_numbers_stay_in_their_world(corpus):
    everything = [*corpus.tellings, *corpus.changes]
    with (FOLDER / "worlds.csv").open(encoding="utf-8") as file:
        names = {row["world"]: set(re.findall(r"[A-Z][a-z]+", row["names"])) - TITLES for row in csv.DictReader(file)}

    for one, other in combinations(names, 2):
        assert not names[one] & names[other]

    for telling in everything:
        capitalized = set(re.findall(r"[A-Z][a-z]+", telling.text))
        for world, own in names.items():
            assert world == telling.world or not capitalized & own, telling.id

    worlds_of = defaultdict(set)
    for telling in everything:
        for word in NUMBERS.intersection(words_of(telling.text)):
            worlds_of[word].add(telling.world)
        if re.search(r"\d", telling.text):
            worlds_of["digits"].add(telling.world)

    assert [word for word, worlds in worlds_of.items() if len(worlds) > 1] == []


def test_words_tell_nothing_of_the_plot(corpus):
    """Two tellings of a plot share hardly more words than two stories of other plots and worlds."""
    sets = [{*words_of(telling.text)} for telling in corpus.tellings]
    same, unlike = [], []
    for (i, one), (j, other) in combinations(enumerate(corpus.tellings), 2):
        share = len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        if one.plot == other.plot:
            same.append(share)
        elif one.world != other.world:
            unlike.append(share)

    assert np.mean(same) < np.mean(unlike) + 0.02  # pronouns: whether a plot has a man, a woman or several


def test_tfidf_is_below_chance_where_the_negative_shares_the_world(corpus):
    texts = [telling.text for telling in [*corpus.tellings, *corpus.changes]]
    vectors, _ = lexical_vectors("tfidf", texts, texts)
    cosines = (vectors @ vectors.T).toarray()
    row_of = {text: row for row, text in enumerate(texts)}
    accuracy = {}
    for cell in corpus.cells():
        right = []
        for (anchor, a, b), label in zip(cell.triples.texts(), cell.triples.labels, strict=True):
            own = cosines[row_of[anchor]]
            right.append((own[row_of[a]] > own[row_of[b]]) == (label == 1))
        accuracy[cell.cell] = np.mean(right)

    assert accuracy["far, strong"] < 0.45
    assert accuracy["far, weak"] < 0.65  # what is left are pronouns: who the people of a plot are


PARTS = {"further": (further_plots, further_tellings), "held back": (held_back_plots, held_back_tellings)}


@pytest.mark.parametrize("part", PARTS)
def test_further_plots_have_three_tellings_and_one_with_another_outcome(corpus, part):
    read_plots, read_tellings = PARTS[part]
    plots = {plot.plot for plot in read_plots()}
    tellings = read_tellings()

    assert len(plots) == len(read_plots())
    assert not plots & {plot.plot for plot in corpus.plots}
    assert not {telling.world for telling in tellings} & {*corpus.worlds}

    told, changed = defaultdict(set), Counter()
    for telling in tellings:
        assert 35 <= len(telling.text.split()) <= 140, telling.id
        if telling.changed:
            assert telling.changed == "outcome"
            assert bool(telling.change)
            changed[telling.plot] += 1
        else:
            assert telling.world not in told[telling.plot]
            told[telling.plot].add(telling.world)

    assert told.keys() == changed.keys() == plots
    assert all(len(worlds) >= 3 for worlds in told.values())


def test_plots_and_worlds_held_back_do_not_train(further):
    held_back = held_back_tellings()
    assert not {telling.plot for telling in held_back} & {telling.plot for telling in further}
    assert not {telling.world for telling in held_back} & {telling.world for telling in further}

    by_text = {telling.text: telling for telling in held_back}
    strong, weak = held_back_cells()
    for cell in (strong, weak):
        assert len(cell.triples) == 360
        for row, label in zip(cell.triples.texts(), cell.triples.labels.tolist(), strict=True):
            anchor, a, b = (by_text[text] for text in row)
            positive, negative = (a, b) if label else (b, a)
            assert anchor.plot == positive.plot != negative.plot
            assert anchor.world != positive.world
            assert (negative.world == anchor.world) == (cell is strong)


def test_tfidf_finds_a_further_telling_below_chance_where_the_other_shares_the_world(further):
    stories = [telling for telling in further if not telling.changed]
    texts = [telling.text for telling in stories]
    vectors, _ = lexical_vectors("tfidf", texts, texts)
    cosines = (vectors @ vectors.T).toarray()
    plots = np.array([story.plot for story in stories])
    worlds = np.array([story.world for story in stories])
    right = []
    for row in range(len(stories)):
        positives = cosines[row, (plots == plots[row]) & (worlds != worlds[row])]
        negatives = cosines[row, (plots != plots[row]) & (worlds == worlds[row])]
        right.append((positives[:, None] > negatives).mean())

    assert np.mean(right) < 0.4


def test_splits_share_neither_plots_nor_worlds(corpus):
    parts = {name: corpus.split(name) for name in WORLDS}
    for one, other in combinations(parts.values(), 2):
        assert not {plot.plot for plot in one.plots} & {plot.plot for plot in other.plots}
        assert not {*one.worlds} & {*other.worlds}
    for name, part in parts.items():
        assert len(part.tellings) == NUM_PLOTS[name] * len(WORLDS[name])
        assert {change.plot for change in part.changes} <= {plot.plot for plot in part.plots}
    assert sum(NUM_PLOTS.values()) == len(corpus.plots)
    with refused("unknown_choice", option="split", found="dev"):
        corpus.split("dev")


def test_triples_of_a_cell_relate_as_its_name_says(corpus):
    by_text = {telling.text: telling for telling in [*corpus.tellings, *corpus.changes]}
    assert [cell.cell for cell in corpus.cells()] == list(CELLS)

    for cell in corpus.cells():
        far = cell.cell.startswith("far")
        strong = cell.cell.endswith("strong")
        labels = cell.triples.labels.tolist()
        assert abs(np.mean(labels) - 0.5) < 0.01
        for row, label, plot in zip(cell.triples.texts(), labels, cell.plots, strict=True):
            anchor, a, b = (by_text[text] for text in row)
            positive, negative = (a, b) if label else (b, a)
            assert anchor.plot == positive.plot == plot != negative.plot
            assert (positive.world != anchor.world) == far
            assert bool(positive.changed) != far
            assert (negative.world == anchor.world) == strong
            assert not negative.changed

    assert len(corpus.cells()[0].triples) == 384 * 7


def test_it_is_written_with_its_card_and_triples_that_narrlit_reads(tmp_path):
    written = write_twice_told(tmp_path / "corpus")
    assert {path.name for path in written.files} == {
        *("stories.csv", "changes.csv", "plots.csv", "training.csv", "README.md"),
        *("train.jsonl", "validation.jsonl", "test.jsonl", "held_back.jsonl"),
    }
    assert len(narrlit.read_stories(tmp_path / "corpus/stories.csv")) == 384

    training = narrlit.read_stories(tmp_path / "corpus/training.csv")
    lines = [row["text"] for row in training.values if row["world"] == "plot line"]
    assert len(lines) == len({row["plot"] for row in training.values}) == 28 + len(further_plots())
    assert not {*lines} & {f"{plot.action} {plot.outcome}" for plot in held_back_plots()}

    expected = sum(len(cell.triples) for cell in TwiceTold.read().split("test").cells())
    assert len(read_triples(tmp_path / "corpus/test.jsonl")) == expected
    with refused("output_exists"):
        write_twice_told(tmp_path / "corpus")

    write_twice_told(tmp_path / "corpus", overwrite=True)
