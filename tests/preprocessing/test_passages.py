"""Passages are whole sentences, in order, none lost."""

import pytest

from narrlit.data.tales import sample_tales
from narrlit.preprocessing.passages import split_passages
from narrlit.preprocessing.sentences import split_sentences


@pytest.mark.parametrize("words", [1, 25, 60, 10_000])
def test_passages_contain_all_sentences_in_order(words):
    for tale in sample_tales():
        assert " ".join(split_passages(tale["text"], words)) == " ".join(split_sentences(tale["text"]))


def test_passages_have_about_the_target_number_of_words():
    lengths = [len(passage.split()) for tale in sample_tales() for passage in split_passages(tale["text"])]
    assert 20 < sum(lengths) / len(lengths) < 30


def test_a_long_sentence_is_a_passage_by_itself():
    long = "He went " + "on and " * 40 + "on."
    assert split_passages(f"He rose early. {long} He slept.") == ["He rose early.", long, "He slept."]


@pytest.mark.parametrize(
    ("sentence", "between"),
    [
        ("有一天狐狸在山上看见一只乌鸦。", ""),
        ("एक दिन लोमड़ी ने पेड़ पर कौआ देखा।", " "),
        ("วันหนึ่งหมาจิ้งจอกเห็นอีกาบนต้นไม้", " "),
    ],
)
def test_stories_in_scripts_without_periods_have_passages_of_about_as_many_words(sentence, between):
    passages = split_passages(between.join([sentence] * 12))
    assert len(set(map(len, passages[:-1]))) == 1
    assert 3 <= len(passages) <= 6
    assert between.join(passages) == between.join([sentence] * 12)


def test_a_text_without_a_sentence_is_a_passage():
    assert split_passages("...") == ["..."]
    assert split_passages("") == [""]
