"""Records with placeholders for names, and the texts of raw rows."""

from dataclasses import replace

import pytest

from narrlit.data.pseudonyms import pseudonymised_examples, pseudonymised_stories, pseudonymised_triples
from narrlit.data.records import Example, Negative, Story, Triple
from narrlit.data.rows import read_raw
from narrlit.data.text_fields import text_fields, with_texts
from narrlit.data.writers import write_raw
from narrlit.errors import DataError, OptionError
from narrlit.text.pseudonyms.options import Pseudonyms

RULES = Pseudonyms(backend="rules")
TOGETHER = replace(RULES, scope="triple")


def test_none_leaves_records_as_they_are():
    stories, triples, examples = [Story("Anna", "1")], [Triple("Anna", "b", "c")], [Example("Anna", "b")]
    for scope in ("story", "triple"):
        options = Pseudonyms(scope=scope)
        assert pseudonymised_stories(stories, options) == stories
        assert pseudonymised_triples(triples, options) == triples
        assert pseudonymised_examples(examples, options) == examples


def test_stories_keep_their_ids_and_each_has_its_own_map():
    stories = [Story("Anna met Boris.", "7"), Story("Boris sings."), Story("Anna met Boris.", "9")]
    assert pseudonymised_stories(stories, RULES) == [
        Story("Character_A met Character_B.", "7"),
        Story("Character_A sings."),
        Story("Character_A met Character_B.", "9"),
    ]


def test_stories_share_nothing_with_others():
    with pytest.raises(OptionError, match="must not depend on other stories; use scope story"):
        pseudonymised_stories([Story("Anna")], TOGETHER)


def test_triples_share_or_not():
    triples = [Triple("Anna met Boris.", "Boris sings.", "Clara sings.", True), Triple("Clara ran.", "b", "c", None)]
    assert pseudonymised_triples(triples, TOGETHER) == [
        Triple("Character_A met Character_B.", "Character_B sings.", "Character_C sings.", True),
        Triple("Character_A ran.", "b", "c", None),
    ]
    assert pseudonymised_triples(triples, RULES)[0].texts == (
        "Character_A met Character_B.",
        "Character_A sings.",
        "Character_A sings.",
    )


def test_examples_keep_kinds_groups_and_order():
    far = (Negative("Clara left Anna.", "theme"), Negative("A dog barks.", None), Negative("Boris died.", "mined"))
    examples = [Example("Anna met Boris.", "Boris sings.", far, "g1"), Example("Anna", "x")]
    assert pseudonymised_examples(examples, TOGETHER)[0] == Example(
        "Character_A met Character_B.",
        "Character_B sings.",
        (
            Negative("Character_C left Character_A.", "theme"),
            Negative("A dog barks.", None),
            Negative("Character_B died.", "mined"),
        ),
        "g1",
    )
    apart = pseudonymised_examples(examples, RULES)[0]
    assert [n.text for n in apart.negatives] == [
        "Character_A left Character_B.",
        "A dog barks.",
        "Character_A died.",
    ]


def written(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return read_raw(path)


@pytest.mark.parametrize(
    ("row", "kind", "places"),
    [
        ('{"id": 3, "text": "a", "label": "b"}', "stories", ["text"]),
        ('{"story": "a", "theme": "t", "outcome": ""}', "stories", ["story", "theme"]),
        ('{"story": "a", "text": "b"}', "stories", ["text", "story"]),
        ('{"text": "a", "plot_events": ["e", null, "f"]}', "stories", ["text", "plot_events/0", "plot_events/2"]),
        ('"a"', "stories", [""]),
        ('{"anchor_text": "a", "text_a": "b", "text_b": null, "x": "y"}', "triples", ["anchor_text", "text_a"]),
        ('{"anchor_story": "a", "similar_story": "b", "dissimilar_story": "c"}', "triples",
         ["anchor_story", "similar_story", "dissimilar_story"]),
        ('{"anchor": "a", "positive": "b", "negatives": ["c", {"text": "d", "kind": "theme"}, 5], "neg_theme_1": "e"}',
         "examples", ["anchor", "positive", "negatives/0", "negatives/1/text", "neg_theme_1"]),
    ],
)  # fmt: skip
def test_where_texts_stand_and_that_they_go_back_there(tmp_path, row, kind, places):
    raw = written(tmp_path, row)
    fields = text_fields(raw)
    value = raw.rows[0].value
    texts = fields.of(value)
    assert (fields.kind, list(texts)) == (kind, places)
    assert with_texts(value, texts) == value
    marked = with_texts(value, {place: text + "!" for place, text in texts.items()})
    assert fields.of(marked) == {place: text + "!" for place, text in texts.items()}
    assert with_texts(marked, texts) == value


def test_files_without_texts_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"no field of texts, its first row has id,title; known: text or story or"):
        text_fields(written(tmp_path, '{"id": 1, "title": "Anna"}'))
    with pytest.raises(DataError, match="its first row has a JSON list"):
        text_fields(written(tmp_path, "[1]"))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_raw_rows_are_written_as_they_were_read(tmp_path, suffix):
    rows = [{"text": 'a "b"\nc', "id": "1", "note": ""}, {"text": "d,\te", "id": "2", "note": "x"}]
    write_raw(tmp_path / f"f{suffix}", rows)
    assert [row.value for row in read_raw(tmp_path / f"f{suffix}").rows] == rows


def test_rows_go_only_where_they_fit(tmp_path):
    write_raw(tmp_path / "f.txt", ["Anna", "Boris"])
    assert (tmp_path / "f.txt").read_text() == "Anna\nBoris\n"
    for name, rows in (("f.csv", ["Anna"]), ("g.txt", [{"text": "a"}]), ("f.xml", ["a"])):
        with pytest.raises(OptionError, match="name one of the kind they came from"):
            write_raw(tmp_path / name, rows)
