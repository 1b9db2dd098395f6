"""Pseudonyms in training: what trains and is judged has placeholders; data are compared by the stories as they are."""

import pytest

from narrlit.callbacks.answer_record import triples_digest
from narrlit.data.records import Example, Negative, Triple
from narrlit.data.writers import write_examples, write_triples
from narrlit.datamodules import Extra, FileData, FoldData, Loading, StoryWorldData
from narrlit.errors import OptionError
from narrlit.preprocessing.pseudonyms import PseudonymOptions

STORIES = ["Anna sails to Bergen.", "Boris sails to Oslo.", "Clara climbs and Anna waits.", "Nobody sails anywhere."]
NAMES = {"Anna": "PERSON", "Boris": "PERSON", "Clara": "PERSON", "Bergen": "PLACE", "Oslo": "PLACE"}
HIDDEN = Loading(pseudonyms=PseudonymOptions("given"))
SHARED = Loading(pseudonyms=PseudonymOptions("given", "triple"))


class NamedData(FileData):
    names = dict.fromkeys(STORIES, NAMES)


@pytest.fixture
def files(tmp_path):
    write_examples(tmp_path / "train.jsonl", [Example(*STORIES[:2], (Negative(STORIES[2], "triple"),), "g")])
    write_triples(tmp_path / "dev.jsonl", [Triple(*STORIES[:3], True), Triple(*STORIES[1:], False)])
    return str(tmp_path / "train.jsonl"), str(tmp_path / "dev.jsonl")


def test_names_are_gone_from_what_trains_and_is_judged(files):
    data, plain = NamedData(*files, loading=HIDDEN), FileData(*files)
    data.setup("fit")
    plain.setup("fit")
    texts = ["Character_A sails to Location_1.", "Character_A climbs and Character_B waits.", STORIES[3]]
    assert data.examples == [Example(texts[0], texts[0], (Negative(texts[1], "triple"),), "g")]
    assert data.triples["validation"] == [Triple(texts[0], texts[0], texts[1], True), Triple(*texts, False)]
    assert data.training_texts() == texts[:2]
    assert data.provenance["train"]["pseudonyms"]["backend"] == "given"
    assert "pseudonyms" not in plain.provenance["train"]
    # Names tell stories apart where data sets are compared, and judged triples are the same ones whatever is done.
    assert data.triples_as_read("validation") == plain.triples["validation"]
    assert triples_digest(data.triples_as_read("validation")) == triples_digest(plain.triples_as_read("validation"))
    assert data.train_validation_overlap() == plain.train_validation_overlap()
    assert data.train_validation_overlap().shared_pairs == 2
    data.train_also([Example(*data.triples["validation"][1].texts[:2])])
    assert data.train_validation_overlap().shared_pairs == 3


def test_the_stories_of_a_triple_may_share_a_mapping(files):
    data = NamedData(*files, loading=SHARED)
    data.setup("fit")
    assert data.examples[0].texts == (
        "Character_A sails to Location_1.",
        "Character_B sails to Location_2.",
        "Character_C climbs and Character_A waits.",
    )
    assert data.triples["validation"][0].texts == data.examples[0].texts
    assert data.triples["validation"][1].texts[0] == "Character_A sails to Location_1."


def test_unlabelled_stories_and_folds_too(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"text": "Anna sails to Bergen."}\n')
    with pytest.raises(OptionError, match="scope story"):
        FileData(extra=Extra(unlabelled=str(tmp_path / "s.jsonl")), loading=SHARED).unlabelled_texts()
    world = StoryWorldData(train=4, validation=2, loading=HIDDEN)
    world.setup("fit")
    bare = StoryWorldData(train=4, validation=2)
    bare.setup("fit")
    assert not set(world.training_texts()) & set(bare.training_texts())
    assert world.story_truths(world.training_texts()) == bare.story_truths(bare.training_texts())
    folds = FoldData(StoryWorldData(train=4, validation=2, loading=HIDDEN), folds=2)
    folds.setup("fit")
    assert all("Character_A" in text for example in folds.examples for text in example.texts)
    assert all("Character_A" in text for triple in folds.triples["validation"] for text in triple.texts)
