"""narrlit evaluate: accuracies, JSON, labels apart, and the real development set."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from json_files import read_json
from refusals import refused

import narrlit as narrlit_package
from narrlit.data.readers import read_triples
from narrlit.data.rows import file_digest
from narrlit.data.schema import StoryTable, Triples
from narrlit.data.splits import story_numbers
from narrlit.data.storyworld import StoryWorld
from narrlit.data.writers import write_triples
from narrlit.models.embedding import embed_stories
from narrlit.models.registry import load_encoder
from narrlit.statistics.estimates import estimate
from narrlit.statistics.significance import wilson_interval

REAL = Path(__file__).parents[2].parent / "shared/data/nsnrl"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="the task's data is not here")


def settings_of(found):
    """Settings in the JSON object that a command printed."""
    assert found.code == 0, found.err
    return json.loads(found.out)["settings"]


def test_json_is_one_object_and_nothing_else(narrlit, world_files, tiny):
    words = ("evaluate", world_files / "validation.jsonl", "--model", tiny(), "--max-length", "10", "--json")
    assert settings_of(narrlit(*words)).items() >= {"long": "windows", "truncated": 0, "words_read": 1.0}.items()

    found = narrlit(*words, "--long", "truncate")
    assert found.code == 0, found.err

    answer = settings_of(found)
    assert answer["long"] == "truncate"
    assert 0 < answer["words_read"] < 0.5
    assert (
        f" % of words read: {answer['truncated']} of {answer['truncated']} stories were cut at 10 tokens" in found.err
    )
    assert set(answer) >= {"dropped", "truncated", "model", "triples"}
    (figure,) = json.loads(found.out)["figures"]
    assert figure["n"] == 9
    assert figure["low"] < figure["value"] < figure["high"]
    assert answer["scorer"] == "cosine"
    assert not {"reading", "gamma", "windows", "tau", "aligned"} & set(answer)


@pytest.mark.parametrize("baseline", ["random", "jaccard", "tfidf", "bm25", "longer"])
def test_baselines_print_accuracy_n_and_interval(narrlit, world_files, baseline):
    found = narrlit("evaluate", world_files / "validation.jsonl", "--baseline", baseline)
    assert found.code == 0, found.err
    assert f"{baseline}: accuracy 0." in found.out
    assert "n = 9" in found.out


def test_flipped_labels_flip_the_accuracy(narrlit, world_files, tmp_path):
    triples = read_triples(world_files / "validation.jsonl")
    bare = [replace(triple, a_is_closer=None) for triple in triples]
    write_triples(tmp_path / "bare.jsonl", Triples(triples.stories, bare))
    answers = {}
    for flip in (False, True):
        labels = tmp_path / f"labels-{flip}.jsonl"
        labels.write_text("".join(json.dumps({"text_a_is_closer": t.a_is_closer != flip}) + "\n" for t in triples))
        found = narrlit("evaluate", "bare.jsonl", "--labels", labels, "--baseline", "jaccard", "--json")
        answers[flip] = json.loads(found.out)["figures"][0]["value"]

    assert answers[False] + answers[True] == pytest.approx(1)
    assert answers[False] != answers[True]

    found = narrlit("evaluate", "bare.jsonl", "--baseline", "jaccard")
    assert found.code == 2
    assert "bare.jsonl has 9 rows without a label: give a file of them as --labels" in found.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--baseline", "jaccard", "--model", "minilm"], "one of --model and --baseline"),
        (["--baseline", "guess"], "guess"),
        (["--model", "runs/none"], "runs/none: does not exist; runs contains nothing"),
        (["--baseline", "jaccard", "--views", "v.jsonl"], "need --model"),
        (["--baseline", "jaccard", "--scorer", "meanmax"], "--scorer meanmax needs a model"),
        (["--model", "minilm", "--gamma", "0.1"], "need --scorer meanmax"),
        (["--model", "minilm", "--scorer", "meanmax", "--gamma", "-1"], "--gamma -1.0: must be"),
    ],
)
def test_mistakes_cost_one_line_and_exit_code_2(narrlit, world_files, arguments, words):
    found = narrlit("evaluate", world_files / "validation.jsonl", *arguments)
    assert found.code == 2
    assert found.out == ""
    assert "Traceback" not in found.err
    assert words in found.err


def test_meanmax_records_its_settings(narrlit, world_files, tiny):
    evaluate = ("evaluate", world_files / "validation.jsonl", "--model", tiny(), "--scorer", "meanmax")
    found = narrlit(*evaluate, "--json")
    assert found.code == 0, found.err

    answer = settings_of(found)
    settings = {"scorer": "meanmax", "reading": "max_similarity", "gamma": 0.0183, "windows": 2, "tau": 1.0168}
    assert settings.items() <= answer.items()
    assert f"windows decided {answer['aligned']} of 9" in found.err

    options = ["--reading", "pooled", "--gamma", "2", "--windows", "3", "--tau", "0.5"]
    answer = settings_of(narrlit(*evaluate, *options, "--json"))
    assert [answer[name] for name in ("reading", "gamma", "windows", "tau", "aligned")] == ["pooled", 2, 3, 0.5, 9]

    found = narrlit(*evaluate, "--reading", "pooled", "--max-length", "10")
    assert "meanmax (pooled): accuracy 0." in found.out
    assert "sentences are longer than 10 tokens: read in windows" in found.err


def recall_of_joined(pairs, encoder):
    """Mean reciprocal ranks, truncated and in windows, of the text that a query's partner is joined into by threes."""
    pairs = pairs[: len(pairs) // 3 * 3]
    first, second = zip(*pairs, strict=True)
    joined = [" ".join(second[start : start + 3]) for start in range(0, len(second), 3)]
    places = np.arange(len(pairs))
    means = []
    for encoder.long in ("truncate", "windows"):
        queries = embed_stories(encoder, first, progress=False).embeddings
        texts = embed_stories(encoder, joined, progress=False).embeddings
        cosines = queries @ texts.T
        own = cosines[places, places // 3]
        ranks = (cosines >= own[:, None]).sum(axis=1)
        means.append((1 / ranks).mean())
    return means


@pytest.mark.long
def test_joined_stories_are_found_more_often_in_windows():
    triples = StoryWorld(5).triples(24)
    encoder = load_encoder("minilm", max_length=96)
    truncated, windows = recall_of_joined([(t.anchor.text, t.positive.text) for t in triples], encoder)
    assert windows > truncated + 0.05


def test_a_model_trained_on_these_triples_is_flagged_on_screen(narrlit, world_files, tiny, tmp_path, monkeypatch):
    file = world_files / "validation.jsonl"
    shutil.copytree(tiny(), tmp_path / "run")
    trained = {"train": {"files": [{"sha256": file_digest(file), "path": str(file)}]}}
    (tmp_path / "run/run.json").write_text(json.dumps({"data": trained}))
    for module in ("models.registry", "embedding_cache.space"):
        monkeypatch.setattr(f"narrlit.{module}.find_checkpoint", lambda source: None)  # the folder is the model
    found = narrlit("evaluate", file, "--model", "run")

    assert found.code == 0, found.err
    assert "warning: run was trained on these triples: no result" in found.err
    assert "trained on these triples" in found.out

    notes = json.loads(narrlit("evaluate", file, "--model", "run", "--json").out)["notes"]
    assert notes[0]["code"] == "seen_in_training"
    assert notes[0]["values"]["reason"].startswith("trained on these triples")


def test_answers_are_written_row_by_row(narrlit, world_files, tmp_path):
    found = narrlit("evaluate", world_files / "validation.jsonl", "--baseline", "longer", "--out", "o", "--json")
    assert found.code == 0, found.err
    assert read_json(tmp_path / "o/evaluate.json") == json.loads(found.out)

    with (tmp_path / "o/answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    labels = [triple.a_is_closer for triple in read_triples(world_files / "validation.jsonl")]

    assert [row["text_a_is_closer"] == "true" for row in rows] == labels
    right = [row["longer.right"] == "true" for row in rows]
    assert np.mean(right) == json.loads(found.out)["figures"][0]["value"]

    for row, label in zip(rows, labels, strict=True):
        sign = 1 if label else -1
        assert float(row["longer.margin"]) == sign * (float(row["longer.score_a"]) - float(row["longer.score_b"]))


def test_triples_that_share_stories_are_evaluated_by_story(narrlit, make):
    rows = []
    for number in range(24):
        texts = {"anchor_text": f"A fox {number // 4} runs.", "text_a": f"A fox {number}.", "text_b": f"Rain {number}."}
        rows.append({**texts, "text_a_is_closer": number % 8 < 3})
    path = make("sharing.jsonl", rows)
    found = narrlit("evaluate", path, "--baseline", "jaccard", "--json")
    assert found.code == 0, found.err

    (figure,) = json.loads(found.out)["figures"]
    triples = read_triples(str(path))
    correct = triples.labels == 1  # word overlap always chooses A
    expected = estimate(correct, story_numbers(triples))
    assert figure["method"] == "by_story"
    assert (figure["value"], figure["low"], figure["high"], figure["n"]) == expected[:4]
    assert (figure["low"], figure["high"]) != wilson_interval(9, 24)


def test_no_triples_are_refused_everywhere(tiny):
    triples = Triples(StoryTable(), [])
    for run in (
        lambda: narrlit_package.evaluate(triples, "jaccard"),
        lambda: narrlit_package.compare(triples, ["jaccard", "longer"]),
        lambda: narrlit_package.fuse(triples, [tiny()]),
    ):
        with refused("no_triples"):
            run()
