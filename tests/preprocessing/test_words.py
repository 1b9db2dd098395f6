"""Words of texts in any script: against Python's own pattern, and by hand."""

import re
import unicodedata

import pytest

from narrlit.data.tales import sample_tales
from narrlit.preprocessing.words import index_words, joined_text, num_characters, num_words


def test_words_of_english_are_those_of_scikit_learns_pattern():
    for tale in sample_tales():
        text = f"{tale['text']} Don’t: naïve cafés, x² and ½, snake_case!"
        assert index_words(text, shortest=2) == re.findall(r"\b\w\w+\b", text)
        assert num_words(text) == len(text.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("लोमड़ी ने कौआ देखा।", ["लोमड़ी", "ने", "कौआ", "देखा"]),
        ("الثَّعْلَبُ جَاءَ؟", ["الثَّعْلَبُ", "جَاءَ"]),
        ("狐狸 and 乌", ["狐", "狐狸", "狸", "and", "乌"]),
        ("หมาป่า", ["ห", "หม", "ม", "มา", "า", "าป่", "ป่", "ป่า", "า"]),
        ("여우가 왔다", ["여우가", "왔다"]),
    ],
)
def test_words_keep_their_marks_and_characters_without_spaces_are_paired(text, words):
    assert index_words(text) == [unicodedata.normalize("NFC", word) for word in words]


@pytest.mark.parametrize(
    ("text", "words", "characters"),
    [
        ("狐狸看见了乌鸦。", 4, 8),
        ("きつねはカラスを見た。", 5, 11),
        ("หมาป่าเห็นอีกา", 3, 11),
        ("Die 狐狸 heißt hier Fuchs.", 5, None),
        ("लोमड़ी ने कौआ देखा।", 4, None),
        ("여우가 왔다.", 2, None),
        ("", 0, None),
    ],
)
def test_lengths_are_in_characters_where_no_spaces_divide_words(text, words, characters):
    assert num_words(text) == words
    assert num_characters(text) == characters


def test_parts_are_joined_as_their_script_is_written():
    assert joined_text(["狐来了。", "“乌鸦”走了。"]) == "狐来了。“乌鸦”走了。"
    assert joined_text(["「狐」", "カラスー", "ー。"]) == "「狐」カラスーー。"
    assert joined_text(["여우가", "왔다."]) == "여우가 왔다."
    assert joined_text([]) == ""
