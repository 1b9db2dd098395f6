"""Versions: stories of one group are each other's positives and never negatives, whatever they are read from."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_reader import fit
from refusals import refused

from narrlit.data.sampling import DistinctBatchSampler, StorySettings
from narrlit.data.schema import StoryTable, TrainingExamples
from narrlit.data.twice_told import TwiceTold
from narrlit.datamodules import FileData, LoaderOptions, VersionSampling
from narrlit.datamodules.story_versions import read_versions

TALES = [
    {"text": f"Tale {plot} told in {world}. It is long. It has an end in {world}.", "plot": plot, "world": world}
    for plot in ("a", "b", "c")
    for world in ("harbor", "office", "court")
]
CHANGED = {"text": "Tale a ends badly at court.", "plot": "a", "world": "court", "changed": "outcome"}


def read(settings):
    table = StoryTable()
    found = read_versions(settings, False, table)
    return found, TrainingExamples(table, found.examples)


def test_each_story_is_paired_with_other_versions_and_never_with_itself(make):
    path = str(make("tales.jsonl", [*TALES, {"text": "Alone.", "plot": "d"}, {"text": "No plot.", "plot": ""}]))
    found, examples = read(VersionSampling(path, versions=2))
    assert found.num_stories == 9
    assert found.num_groups == 3
    assert len(examples) == 18
    for anchor, positive in ((texts[0], texts[1]) for texts in examples.texts()):
        assert anchor != positive
        assert anchor[:6] == positive[:6]
    assert set(np.bincount(examples.anchors)) == {2}

    one, _ = read(VersionSampling(path, versions=1))
    assert len(one.examples) == 9
    assert found.summary() == "versions: 9 stories in 3 groups of two or more, 18 training examples"


def test_a_changed_story_is_a_negative_for_positives_with_the_same_setting(make):
    path = str(make("tales.jsonl", [*TALES, CHANGED]))
    _, examples = read(VersionSampling(path, setting="world", versions=2))
    for row, texts in zip(examples, examples.texts(), strict=True):
        negative = texts[2:]
        assert negative == ((CHANGED["text"],) if "Tale a told in court" in texts[1] else ())
        assert row.kinds == ("outcome",) * len(negative)
        assert row.setting in texts[0]

    alone = examples.groups[examples.stories.add(CHANGED["text"])]

    assert (examples.groups == alone).sum() == 1


def test_passages_are_paired_with_those_at_the_same_relative_position(make):
    long = " ".join(f"Sentence {number} of the first." for number in range(8))
    short = " ".join(f"Sentence {number} of the second." for number in range(4))
    path = str(make("tales.jsonl", [{"text": long, "atu": 1}, {"text": short, "atu": 1}]))
    _, examples = read(VersionSampling(path, same="atu", passage_words=5))
    numbers = []
    for anchor, positive in examples.texts():
        numbers.append((int(anchor.split()[1]), int(positive.split()[1])))

    assert numbers[:8] == [(number, number // 2) for number in range(8)]
    assert numbers[8:] == [(number, 2 * number + 1) for number in range(4)]
    assert len(np.unique(examples.groups)) == 1


def test_the_same_value_in_two_files_is_one_group(make):
    first = str(make("a.jsonl", TALES[:1]))
    second = str(make("b.jsonl", TALES[1:2]))
    found, _ = read(VersionSampling([first, second]))
    assert found.num_groups == 1


def test_errors_name_file_line_and_column(make):
    path = str(make("tales.jsonl", TALES))
    with refused("missing_columns", path="tales.jsonl", column="type"):
        read(VersionSampling(path, same="type"))
    with refused("story_in_two_groups", place="twice.jsonl:2", column="plot", group="a", other="b"):
        read(VersionSampling(str(make("twice.jsonl", [TALES[0], {**TALES[0], "plot": "b"}]))))
    with refused("unknown_change", place="odd.jsonl:1", column="changed", found="tone"):
        read(VersionSampling(str(make("odd.jsonl", [{**CHANGED, "changed": "tone"}]))))
    with refused("no_same_value", option="data.versions.same", column="plot"):
        read(VersionSampling(str(make("alone.jsonl", [TALES[0], TALES[4]]))))
    for mistake in ({"versions": 0}, {"setting_share": 1.5}, {"passage_words": 0}):
        with refused("config_value", option=f"versions.{next(iter(mistake))}"):
            VersionSampling(path, **mistake)


def test_training_data_of_twice_told_have_no_plot_or_world_of_its_other_parts():
    found, examples = read(VersionSampling("twice-told"))
    corpus = TwiceTold.read()
    held_back = {*corpus.split("validation").worlds, *corpus.split("test").worlds}
    unseen = [story.text for story in corpus.tellings if story.world in held_back]
    for part in ("validation", "test"):
        names = {plot.plot for plot in corpus.split(part).plots}
        unseen += [story.text for story in corpus.tellings if story.plot in names]

    assert not {*examples.stories.texts} & {*unseen}
    assert found.num_groups > 200
    assert len(set(examples.settings.tolist())) >= 40


@pytest.mark.parametrize("world", [1, 2])
def test_a_batch_has_no_group_twice_and_batches_can_have_one_setting(world):
    _, examples = read(VersionSampling("twice-told"))
    groups, settings = examples.groups, examples.settings
    anchors = groups[examples.anchors]
    positives = groups[examples.positives]

    assert np.array_equal(anchors, positives)

    batches = list(DistinctBatchSampler(anchors, positives, 8, 1, settings=StorySettings(settings, 1.0)))
    for batch in batches:
        assert len(set(anchors[batch])) == len(batch)

    of_one_setting = [batch for batch in batches if len(set(settings[batch])) == 1]
    assert len(of_one_setting) > 0.7 * len(batches)

    mixed = list(DistinctBatchSampler(anchors, positives, 8, 1, settings=StorySettings(settings, 0.0)))
    assert sum(len(set(settings[batch])) == 1 for batch in mixed) < 0.1 * len(mixed)
    assert sorted(place for batch in batches for place in batch) == list(range(len(examples)))


def test_versions_and_triples_can_be_combined(make):
    path = str(make("tales.jsonl", TALES))
    triples = str(make("t.jsonl", [{"anchor": f"x{i}", "positive": f"y{i}"} for i in range(4)]))
    settings = VersionSampling(path, setting="world", setting_share=1.0)
    data = FileData(triples, versions=settings, loading=LoaderOptions(batch_size=3))
    reader = fit(data)

    assert len(data.examples) == 4 + 18
    assert [file["rows"] for file in data.provenance["train"]["files"]] == [4, 9]

    for batch in reader.seen:
        own = batch.groups[batch.anchors]
        assert len(torch.unique(own)) == len(own)


def test_a_decomposed_copy_is_no_other_version_and_is_in_one_group(make):
    texts = ["Ein König weinte.", unicodedata.normalize("NFD", "Ein König  weinte."), "Ein Fuchs lief."]
    plots = ["Thule", unicodedata.normalize("NFD", "Thule\u00a0"), "Thule"]
    rows = [{"text": text, "größe": plot.strip()} for text, plot in zip(texts, plots, strict=True)]
    table = StoryTable()
    versions = VersionSampling(str(make("v.jsonl", rows)), same=unicodedata.normalize("NFD", "größe"), versions=3)
    read = read_versions(versions, strict=True, stories=table)
    assert (read.num_stories, read.num_groups, table.texts) == (2, 1, [texts[0], texts[2]])

    rows[1]["größe"] = "other"
    with refused("story_in_two_groups", column="größe", group="Thule", other="other"):
        read_versions(VersionSampling(str(make("w.jsonl", rows)), same="größe"), strict=True, stories=StoryTable())


NAMED = [
    {"text": "One day Anna met Bert. The fox saw Anna, and Bert ran home.", "plot": "a"},
    {"text": "There came Cleo with Dora. A fox saw Cleo, so Dora ran home.", "plot": "a"},
    {"text": "Here Emil sat with Fritz. The hen heard Emil, and Fritz ran home.", "plot": "b"},
    {"text": "Now Gerda sat with Hugo. A hen heard Gerda, so Hugo ran home.", "plot": "b"},
]
NAMES = ["Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz", "Gerda", "Hugo"]


def names_in(text):
    return {name for name in NAMES if name in text}


def test_renamed_pairs_have_other_names_and_the_same_words(make):
    path = str(make("named.jsonl", NAMED))
    found, examples = read(VersionSampling(path, renamed=1.0))
    originals = [row["text"] for row in NAMED]
    of_group = {"a": originals[:2], "b": originals[2:]}
    assert len(examples) == 4
    for row, texts in zip(examples, examples.texts(), strict=True):
        for text in texts:
            assert text not in originals
            same = [other for other in of_group[row.group] if without_names(other) == without_names(text)]
            assert len(same) == 1
            assert len(names_in(text)) == 2
            assert not names_in(text) & names_in(same[0])
    assert found.originals == originals

    as_read, none = read(VersionSampling(path))
    assert {text for texts in none.texts() for text in texts} == {*originals}
    assert as_read.originals == []


def without_names(text):
    for name in NAMES:
        text = text.replace(name, "")
    return text


def test_a_share_of_the_pairs_is_renamed(make):
    rows = [
        {**row, "text": f"{row['text']} Part {part}.", "plot": f"{row['plot']}{part}"}
        for part in range(200)
        for row in NAMED
    ]
    path = str(make("many.jsonl", rows))
    _, examples = read(VersionSampling(path, renamed=0.7))
    originals = {row["text"] for row in rows}
    pairs = [[text in originals for text in texts] for texts in examples.texts()]
    assert len(pairs) == 800
    assert all(anchor == positive for anchor, positive in pairs)
    # The standard deviation of a share of 800 is 0.016.
    assert np.mean([anchor for anchor, _ in pairs]) == pytest.approx(0.3, abs=0.06)


def test_renamed_stories_of_the_validation_set_are_still_found(make):
    versions = VersionSampling(str(make("named.jsonl", NAMED)), renamed=1.0)
    others = ["Some other story.", "A third one."]
    triple = {"anchor_text": NAMED[0]["text"], "text_a": others[0], "text_b": others[1], "text_a_is_closer": True}
    data = FileData(validation=str(make("dev.jsonl", [triple])), versions=versions, loading=LoaderOptions(batch_size=2))
    data.setup("fit")
    assert data.train_validation_overlap().shared_stories == 1


def test_groups_that_are_near_each_other_are_in_no_batch(make):
    rows = [{"text": f"Tale {plot} number {number}.", "plot": plot} for plot in "abcdef" for number in range(2)]
    path = str(make("tales.jsonl", rows))
    near = path.replace("tales.jsonl", "near.tsv")
    Path(near).write_text('a\tb\t"open\nc\ta\nzz\ta\n', encoding="utf-8")  # a title may begin with a quotation mark
    _, examples = read(VersionSampling(path, near=near))
    groups = dict(zip((row.group for row in examples), examples.groups[examples.anchors].tolist(), strict=True))
    assert {row.group: set(row.near) for row in examples} == {
        "a": {"b", "c", "zz"},
        "b": {"a"},
        "c": {"a"},
        "d": set(),
        "e": set(),
        "f": set(),
    }

    def batches_of(near):
        sampler = DistinctBatchSampler(
            examples.groups[examples.anchors], examples.groups[examples.positives], 6, seed=1, near=near
        )
        found = []
        for epoch in range(20):
            sampler.set_epoch(epoch)
            found += [{int(examples.groups[examples.anchors[row]]) for row in batch} for batch in sampler]
        return found

    a, b, c = groups["a"], groups["b"], groups["c"]
    assert any({a, b} <= batch for batch in batches_of(None))
    assert not any({a, b} <= batch or {a, c} <= batch for batch in batches_of(examples.near))
    assert any({b, c} <= batch for batch in batches_of(examples.near))


def test_a_row_with_one_group_names_its_line(make):
    path = str(make("tales.jsonl", TALES))
    near = path.replace("tales.jsonl", "near.csv")
    Path(near).write_text("a,b\nc\n", encoding="utf-8")
    with refused("one_column", path="near.csv", line=2):
        read(VersionSampling(path, near=near))
    with refused("unreadable_pairs", path="none.csv"):
        read(VersionSampling(path, near=near.replace("near", "none")))


def test_different_versions_are_drawn_more_often_than_copies(make):
    rows = [{"text": "The king had three sons and a mill.", "plot": "a"}]
    rows += [{"text": f"The king had three sons and a mill {number}.", "plot": "a"} for number in range(3)]
    rows += [{"text": f"A merchant lost ring {number} at sea.", "plot": "a"} for number in range(3)]
    _, examples = read(VersionSampling(str(make("tales.jsonl", rows)), versions=2))
    different = [texts[1].startswith("A merchant") for texts in examples.texts() if texts[0].startswith("The king")]
    assert len(different) == 8
    assert np.mean(different) > 0.7  # half of the other versions
