"""FileData: extra files, views and pseudonyms are fields of stories from the reader on."""

import pytest
from fake_reader import attach, fit
from refusals import refused

from narrlit.data.schema import Views
from narrlit.data.views import ViewFiles
from narrlit.datamodules import Extra, FileData, LoaderOptions, PseudoLabels, StoryWorldData
from narrlit.preprocessing.pseudonyms import PseudonymOptions

TRIPLE = {"anchor_text": "Tale one. Its end.", "text_a": "Tale two.", "text_b": "Tale three.", "text_a_is_closer": True}


def views(text):
    return {"text": text, "theme": f"theme of {text}", "plot_events": ["it", "goes"], "outcome": f"end of {text}"}


def test_synthetic_rows_come_last_and_are_counted(make):
    own = str(make("own.jsonl", [{"anchor": f"a{i}", "positive": f"b{i}"} for i in range(3)]))
    written = str(make("written.jsonl", [{"anchor": f"x{i}", "positive": f"y{i}"} for i in range(2)]))
    data = FileData(own, extra=Extra(synthetic=[written]))
    examples = data.read_examples(data.stories)

    assert examples.texts() == [*((f"a{i}", f"b{i}") for i in range(3)), ("x0", "y0"), ("x1", "y1")]
    assert data.synthetic_rows == 2
    assert [file["rows"] for file in data.provenance["train"]["files"]] == [3, 2]


def test_each_unlabeled_story_is_added_to_the_table_once(make):
    train = str(make("t.jsonl", [{"anchor": f"a{i}", "positive": f"b{i}"} for i in range(4)]))
    extra = str(make("s.jsonl", ["one", "a1", "two", "one"]))
    data = FileData(train, extra=Extra(unlabelled=extra), pseudo_labels=PseudoLabels("positional", transductive=True))
    data.setup("fit")

    assert [data.stories[i].text for i in data.training.unlabelled] == ["one", "two"]
    assert data.provenance["unlabelled"]["files"][0]["rows"] == 4
    assert data.flags() == {"mined_validation": False, "transductive": True}


def test_views_are_attached_to_anchors_and_evaluated_stories(make):
    train = str(make("t.jsonl", [{"anchor": f"anchor {i}", "positive": f"positive {i}"} for i in range(4)]))
    validation = str(make("v.jsonl", [TRIPLE]))
    texts = [f"ANCHOR  {i}" for i in range(4)] + [TRIPLE[name] for name in ("anchor_text", "text_a")] + ["positive 0"]
    source = str(make("views.jsonl", [views(text) for text in texts]))
    refusing = FileData(train, validation, views=ViewFiles(source))

    with refused("stories_without_views", name="validation", n=1, stories=3, first="Tale three."):
        refusing.setup("fit")

    data = FileData(train, validation, views=ViewFiles(source, "positional"))
    reader = fit(data, reads_views=True)
    assert data.stories[data.examples[0].anchor].views.theme == "theme of ANCHOR  0"
    assert data.stories[data.examples[0].positive].views.action == "it\ngoes"
    assert data.stories[data.examples[1].positive].views == Views(*["positive 1"] * 3)
    assert data.stories[data.triples["validation"][0].b].views == Views(*["Tale three."] * 3)

    noted = data.provenance["validation"]["views"]
    assert noted["positional"] == 1
    assert noted["stories"] == 7
    assert noted["missing"] == "positional"
    assert {type(batch).__name__ for batch in reader.seen} == {"ViewBatch"}


@pytest.mark.parametrize("scope", ["story", "triple"])
def test_names_are_replaced_with_one_mapping_per_scope(scope):
    options = LoaderOptions(pseudonyms=PseudonymOptions("given", scope))
    data = StoryWorldData(6, 4, views=True, loading=options)
    fit(data, reads_views=True)

    for story in data.stories:
        assert story.original != story.text
        assert story.views.outcome in story.text

    apart = 0
    for row, read in zip(data.examples, data.training.read, strict=True):
        names = [data.synthetic_story(index).names for index in read.indices]
        for index, known in zip(row.indices, names, strict=True):
            assert not any(name in data.stories[index].text for name in known)
            assert ("Character_A" in data.stories[index].text) or scope == "triple"
        if not set(names[0]) & set(names[1]):
            apart += 1
            assert ("Character_A" in data.stories[row.positive].text) == (scope == "story")

    assert apart
    assert data.provenance["train"]["pseudonyms"]["scope"] == scope
    assert data.train_validation_overlap() == (0, 0, 0)


def test_true_labels_are_known_after_pseudonymization():
    plain = StoryWorldData(6, 2, pseudo_labels=PseudoLabels("truth"))
    renamed = StoryWorldData(
        6, 2, pseudo_labels=PseudoLabels("truth"), loading=LoaderOptions(pseudonyms=PseudonymOptions("given"))
    )
    labels = []
    for data in (plain, renamed):
        attach(data)
        data.setup("fit")
        data.prepare_inputs("fit")
        labels.append([data.prepared.labels[list(row.indices)].tolist() for row in data.examples])

    assert labels[0] == labels[1]
