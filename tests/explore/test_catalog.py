"""Proposed values of a column: right neighbors, calibrated probabilities, accepted values."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from measured import similarities_of
from refusals import refused

from narrlit.data.readers import read_rows
from narrlit.data.writers import write_table
from narrlit.explore.catalog import catalog
from narrlit.explore.catalog_decisions import CatalogDecisions, read_accepted
from narrlit.library.story_frame import plain
from narrlit.statistics.estimates import estimate_count


@dataclass
class Stories:
    """As much of a collection as a catalog needs."""

    frame: pd.DataFrame
    similarities: object
    about: dict


def stories_of(values, vectors):
    """Stories s0, s1, ... with these values of the column kind (None: unknown) and vectors."""
    vectors = np.asarray(vectors, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"s{row}" for row in range(len(vectors))]
    frame = plain(pd.DataFrame({"id": ids, "title": [f"Title {id}" for id in ids], "text": "a story", "kind": values}))
    return Stories(frame, similarities_of(vectors, measure="csls"), {"source": "tales"})


def sample(values, sizes, noise, seed, share=0.6, dimension=32):
    """Stories around the center of their value, some of them at a distance, and the values that the column lacks."""
    rng = np.random.default_rng(seed)
    names = np.repeat([f"kind {number}" for number in range(values)], sizes)
    centers = np.repeat(rng.normal(size=(values, dimension)), sizes, axis=0)
    distances = noise * rng.uniform(0.3, 2.2, size=(len(names), 1))
    vectors = centers + distances * rng.normal(size=centers.shape)
    is_known = rng.random(len(names)) < share
    kept = [name if known else None for name, known in zip(names.tolist(), is_known, strict=True)]
    lacking = {f"s{row}": name for row, name in enumerate(names.tolist()) if not is_known[row]}
    return stories_of(kept, vectors), lacking


@pytest.fixture(scope="module")
def clear():
    """Thirty stories of three values that are far apart, six of them without a value."""
    rng = np.random.default_rng(0)
    centers = np.repeat(np.eye(3, 16), 10, axis=0)
    values = [None if row % 5 == 0 else f"kind {row // 10}" for row in range(30)]
    return stories_of(values, centers + 0.05 * rng.normal(size=(30, 16)))


def test_the_value_of_the_neighbors_is_proposed_with_the_stories_that_have_it(clear):
    result = catalog(clear, "kind")

    assert {proposal.id: proposal.values[0].value for proposal in result.proposals} == {
        f"s{row}": f"kind {row // 10}" for row in range(0, 30, 5)
    }
    first = result.proposals[0]
    assert first.title == f"Title {first.id}"
    assert first.values[0].probability > 0.8
    similarities = [story.similarity for story in first.values[0].stories]
    assert similarities == sorted(similarities, reverse=True)
    group = int(first.id[1:]) // 10
    assert {int(story.id[1:]) // 10 for story in first.values[0].stories} == {group}


def test_the_accuracy_stands_beside_the_most_frequent_value(clear):
    result = catalog(clear, "kind")

    assert result.accuracy == estimate_count(24, 24)
    assert result.baseline == estimate_count(8, 24)
    assert result.record["accuracy"] == result.accuracy._asdict()
    assert "1.000 [0.862, 1.000]" in str(result)


def test_a_column_of_chance_is_not_found_right():
    rng = np.random.default_rng(0)
    values = rng.choice(["a", "b"], 100).tolist()
    result = catalog(stories_of([*values[:80], *[None] * 20], rng.normal(size=(100, 16))), "kind")

    assert result.accuracy.low < 0.6
    assert result.accuracy.high > 0.4
    assert all(0.25 < proposal.values[0].probability < 0.75 for proposal in result.proposals)


@pytest.mark.parametrize(("values", "sizes", "noise"), [(30, 10, 1.5), (5, 60, 2.0), (100, 2, 1.0), (5, 60, 4.0)])
def test_probabilities_are_calibrated_for_stories_without_a_value(values, sizes, noise):
    """Of proposals with about one probability, about this share is right: in each fifth with 60 proposals or more."""
    probabilities, is_right = [], []
    for seed in range(6):
        stories, lacking = sample(values, sizes, noise, seed)
        for proposal in catalog(stories, "kind").proposals:
            probabilities.append(proposal.values[0].probability)
            is_right.append(proposal.values[0].value == lacking[proposal.id])
    probabilities, is_right = np.array(probabilities), np.array(is_right)

    assert abs(probabilities.mean() - is_right.mean()) < 0.05
    fifths = np.digitize(probabilities, [0.2, 0.4, 0.6, 0.8])
    compared = 0
    for fifth in range(5):
        inside = fifths == fifth
        if inside.sum() >= 60:
            compared += 1
            assert abs(probabilities[inside].mean() - is_right[inside].mean()) < 0.12
    assert compared >= 2


@pytest.mark.parametrize(("values", "size"), [(2, 8), (3, 10), (8, 3)])
def test_no_probability_is_higher_than_so_few_known_stories_support(values, size):
    """After n right proposals of n, the next one is right with a probability of (n + 1) / (n + 2), not of 1."""
    rng = np.random.default_rng(0)
    centers = np.repeat(np.eye(values, 32), size, axis=0)
    kinds = [None if row % 5 == 0 else f"kind {row // size}" for row in range(values * size)]
    result = catalog(stories_of(kinds, centers + 0.05 * rng.normal(size=centers.shape)), "kind")
    supported = (result.accuracy.n + 1) / (result.accuracy.n + 2)

    assert result.accuracy.value == 1
    assert all(proposal.best.probability < supported for proposal in result.proposals)
    assert all(part.mean < supported for part in result.reliability)


def test_probable_values_are_right_though_some_values_occur_in_no_known_story():
    """Of proposals with a high probability, so many are right in small collections, two values of which are unknown."""
    probabilities, is_right = [], []
    for seed in range(20):
        stories, lacking = sample(8, 3, 0.8, seed, share=0.75)
        values = stories.frame["kind"].tolist()
        for row, value in enumerate(values):
            if value in ("kind 0", "kind 1"):
                lacking[f"s{row}"], values[row] = value, None
        few = Stories(plain(stories.frame.assign(kind=values)), stories.similarities, stories.about)
        for proposal in catalog(few, "kind").proposals:
            probabilities.append(proposal.best.probability)
            is_right.append(proposal.best.value == lacking[proposal.id])
    probabilities, is_right = np.array(probabilities), np.array(is_right)
    is_high = probabilities > 0.8

    assert is_high.sum() > 30
    assert is_right[is_high].mean() > probabilities[is_high].mean() - 0.03


def test_cross_validated_probabilities_tell_how_right_the_proposals_are():
    """The table of reliability, which a user sees, agrees with what is true of stories without a value."""
    stories, lacking = sample(5, 120, 2.0, seed=1)
    result = catalog(stories, "kind")
    right = [proposal.values[0].value == lacking[proposal.id] for proposal in result.proposals]

    assert result.accuracy.low - 0.05 < np.mean(right) < result.accuracy.high + 0.05
    assert sum(part.right.n for part in result.reliability) == result.accuracy.n
    for part in result.reliability:
        assert part.low <= part.mean <= part.high
        if part.right.n > 40:
            assert abs(part.mean - part.right.value) < 0.12


def test_stories_of_a_value_that_no_other_has_lower_all_probabilities():
    stories, _ = sample(40, 3, 0.5, seed=0)
    known = catalog(stories, "kind")
    values = stories.frame["kind"].tolist()
    alone = [f"only {row}" if value is not None and row % 3 == 0 else value for row, value in enumerate(values)]
    mixed = catalog(Stories(plain(stories.frame.assign(kind=alone)), stories.similarities, stories.about), "kind")

    assert np.mean([proposal.values[0].probability for proposal in mixed.proposals]) < np.mean(
        [proposal.values[0].probability for proposal in known.proposals]
    )


def test_numbers_are_values_too_and_the_filled_column_has_its_source(clear, tmp_path):
    frame = clear.frame.assign(kind=[value and int(value[-1]) for value in clear.frame["kind"]])
    stories = Stories(plain(frame), clear.similarities, clear.about)
    result = catalog(stories, "kind")
    filled = result.fill({"s0": "0", "s15": "1"})
    filled.write(tmp_path / "filled.csv")
    rows = {row.value["id"]: row.value for row in read_rows(tmp_path / "filled.csv").rows}

    assert str(filled) == "2 accepted values of kind"
    assert (rows["s0"]["kind"], rows["s0"]["kind_source"]) == ("0", "accepted")
    assert (rows["s1"]["kind_source"], rows["s5"]["kind"], rows["s5"]["kind_source"]) == ("given", "", "")
    assert stories.frame["kind"][0] is None


def test_accepted_values_come_back_from_the_table(clear, tmp_path):
    result = catalog(clear, "kind")
    result.write(tmp_path / "proposals.xlsx")
    rows = [dict(row.value) for row in read_rows(tmp_path / "proposals.xlsx").rows]
    assert {row["id"] for row in rows} == {f"s{row}" for row in range(0, 30, 5)}
    for row in rows:
        row["accepted"] = "X" if row["id"] == "s0" and row["value"] == "kind 0" else None
    write_table(tmp_path / "marked.xlsx", rows)

    assert read_accepted(tmp_path / "marked.xlsx") == {"s0": "kind 0"}


def test_probable_values_are_those_above_the_threshold(clear):
    result = catalog(clear, "kind")

    assert set(result.probable(0.5)) == {f"s{row}" for row in range(0, 30, 5)}
    assert result.probable(1.0) == {}
    with refused("range_of_share", option="at_least", found=2):
        result.probable(2)


@pytest.mark.parametrize(
    ("accepted", "refusal"),
    [
        ({"s1": "kind 0"}, {"code": "value_already", "id": "s1", "column": "kind"}),
        ({"sx": "kind 0"}, {"code": "accepted_stranger", "id": "sx", "source": "tales"}),
    ],
)
def test_a_value_is_accepted_only_for_a_story_that_lacks_one(clear, accepted, refusal):
    with refused(**refusal):
        catalog(clear, "kind").fill(accepted)


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        (["a", "b", "c", None], {"code": "no_shared_value", "column": "kind"}),
        (["a", "a", "a", None], {"code": "few_values", "column": "kind", "source": "tales"}),
        (["a", "b", "a", None], {"code": "too_few_values", "column": "kind"}),
    ],
)
def test_a_column_that_can_not_be_learned_is_refused(values, refusal):
    with refused(**refusal):
        catalog(stories_of(values, np.eye(4)), "kind", k=1)


def test_another_column_or_number_is_refused(clear):
    with refused("unknown_column", option="column", column="kinds", source="tales", near="kind"):
        catalog(clear, "kinds")
    with refused("at_least", option="k", found=0, least=1):
        catalog(clear, "kind", k=0)


def test_a_complete_column_shows_its_accuracy_alone(clear, tmp_path):
    frame = clear.frame.assign(kind=[f"kind {row // 10}" for row in range(30)])
    result = catalog(Stories(plain(frame), clear.similarities, clear.about), "kind")

    assert str(result).endswith("No story lacks a value.")
    assert result.table().empty
    with refused("no_proposal"):
        result.write(tmp_path / "proposals.csv")


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (
            "id,value\na,b\n",
            {"code": "missing_columns", "path": "marked.csv", "column": "accepted", "found": "id, value"},
        ),
        ("id,value,accepted\na,b,x\na,c,x\n", {"code": "second_accepted_value", "place": "marked.csv:3", "id": "a"}),
        (
            "id,value,accepted\na,b,perhaps\n",
            {"code": "invalid_acceptance", "place": "marked.csv:2", "found": "perhaps"},
        ),
        ("id,value,accepted\na,,x\n", {"code": "empty_accepted_value", "place": "marked.csv:2"}),
    ],
)
def test_a_mistake_in_a_marked_table_is_named_with_its_line(make, content, refusal):
    with refused(**refusal):
        read_accepted(make("marked.csv", content))


def test_decisions_on_values_are_kept_in_a_file(tmp_path):
    decisions = CatalogDecisions(tmp_path / "catalog.jsonl")
    decisions.add("s0", "kind", "kind 1", accepted=True)
    decisions.add("s0", "kind", "kind 0", accepted=True)
    decisions.add("s5", "kind", "kind 2", accepted=False)
    decisions.add("s5", "other", "x", accepted=True)
    decisions.add("s9", "kind", "kind 0", accepted=True)
    decisions.add("s9", "kind", None, accepted=False)

    again = CatalogDecisions(tmp_path / "catalog.jsonl")
    assert again.accepted("kind") == {"s0": "kind 0"}
    assert again.decided("kind") == {"s0", "s5", "s9"}
    with refused("no_accepted_value"):
        decisions.add("s1", "kind", None, accepted=True)


def test_accepted_values_of_a_column_of_integers_are_integers(clear, tmp_path):
    years = [None if value is None else 1800 + int(value[-1]) for value in clear.frame["kind"]]
    stories = Stories(clear.frame.assign(kind=pd.Series(years, dtype=object)), clear.similarities, clear.about)
    result = catalog(stories, "kind")
    filled = result.fill(result.probable(0))
    filled.write(tmp_path / "f.parquet")
    values = [row.value["kind"] for row in read_rows(tmp_path / "f.parquet").rows]
    assert {*values} == {1800, 1801, 1802}
    assert all(isinstance(value, int) for value in values)
