"""narrlit.generate from Python: files, examples and texts in memory, by a writer of StoryWorld."""

from itertools import chain

import numpy as np
import pytest
from json_files import read_json
from llm_server import MODEL
from refusals import refused
from scripted_writer import write_rows_of

import narrlit
from narrlit.data.readers import read_examples
from narrlit.data.views import read_views
from narrlit.llm.options import GenerationOptions, LLMOptions

ASPECTS = ["theme", "action", "outcome"]


@pytest.fixture
def rows(tmp_path):
    """Three training examples."""
    return write_rows_of(tmp_path / "rows.jsonl", 3)


@pytest.fixture
def generate(llm, writer, tmp_path):
    def run(kind, source, out="out.jsonl", **options):
        settings = GenerationOptions(**options.pop("texts", {}))
        model = LLMOptions(base_url=llm.url, llm_model=MODEL, retries=0, seed=42)
        return narrlit.generate(kind, source, llm=model, out=tmp_path / out, options=settings, **options)

    return run


def test_negatives_of_examples_in_memory_are_those_of_the_file(generate, rows, tmp_path):
    one = {"texts": {"candidates": 1}}
    made = generate("negatives", rows, **one)
    same = generate("negatives", read_examples(rows), "other.jsonl", **one)

    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "other.jsonl").read_bytes()

    table = made.table()
    assert table["row"].tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert table["aspect"].tolist() == 3 * ASPECTS

    anchors = np.array([texts[0] for texts in read_examples(rows).texts()])
    assert table["anchor"].tolist() == anchors.repeat(3).tolist()

    written = []
    for texts in read_examples(tmp_path / "out.jsonl").texts():
        written += texts[3:]
    assert table["text"].tolist() == written
    assert same.table()["text"].tolist() == written
    assert made.num_complete == 3
    assert made.incomplete == []


def test_negatives_are_replaced_by_those_of_a_later_call(generate, rows, tmp_path):
    generate("negatives", rows, texts={"candidates": 1})
    again = generate("negatives", tmp_path / "out.jsonl", "again.jsonl", texts={"candidates": 2})

    assert len(again.examples) == 3
    for example in again.examples:
        assert example.kinds == ("triple", "theme", "theme", "action", "action", "outcome", "outcome")
    assert set(chain.from_iterable(read_examples(rows).texts())).isdisjoint(again.table()["text"])


def test_views_of_texts_and_stories(generate, rows, llm, tmp_path):
    texts = read_examples(rows).stories.texts
    made = generate("views", [texts[0], f" {texts[0].upper()} ", texts[1]])
    assert made.table()["text"].tolist() == texts[:2]
    assert [story.text for story in read_views(tmp_path / "out.jsonl")] == texts[:2]

    sent = len(llm.bodies)
    generate("views", read_views(tmp_path / "out.jsonl"))  # the same texts: the call goes on
    assert len(llm.bodies) == sent == 2
    with refused("output_exists"):
        generate("views", texts[:1])
    assert generate("views", texts[:1], overwrite=True).table()["text"].tolist() == texts[:1]


def test_incomplete_rows_are_reported_and_requested_again(generate, rows, writer, llm, tmp_path):
    writer.spoil = lambda kind, content, attempt: "I cannot." if attempt < 2 else None
    made = generate("views", [read_examples(rows).stories.texts[0]], texts={"attempts": 2})
    assert made.num_complete == 0
    assert made.incomplete == ["story 1 lacks 1 views (2 no JSON object)"]
    assert made.table().empty
    assert not (tmp_path / "out.jsonl").exists()

    report = read_json(tmp_path / "out.jsonl.report.json")
    assert report["kind"] == "views"
    assert report["items"] == 1
    assert report["complete"] == 0
    assert "no JSON object" in str(made)

    writer.spoil = None
    assert generate("views", [read_examples(rows).stories.texts[0]], texts={"attempts": 2}).num_complete == 1


def test_mistakes_name_parameters(generate, rows):
    for options, code in (
        ({"kind": "views", "texts": {"candidates": 2}}, "options_of_negatives"),
        ({"kind": "negatives", "source": ["a text"]}, "source_of_negatives"),
        ({"kind": "views", "out": "v.csv"}, "wrong_suffix"),
        ({"kind": "views", "texts": {"length_ratio": 1}}, "above_one"),
    ):
        with refused(code):
            generate(**{"source": rows, **options})
