"""Answers of models, baselines, files and vectors; embeddings from the cache on disk; bad input."""

import json
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from deferred import deferred
from json_files import read_json
from refusals import refused
from scoring import scores_of

from narrlit.commands import opening
from narrlit.data.readers import read_triples
from narrlit.data.rows import file_digest
from narrlit.data.writers import write_rows
from narrlit.encoding.loading import load
from narrlit.experiments.systems import SystemAnswers, answer_rows, answers_of, flags_of
from narrlit.measures import MeanMaxSimilarity
from narrlit.measures.meanmax import MeanMax
from narrlit.models.embedding import embed_stories
from narrlit.models.registry import load_encoder
from narrlit.submission import write_submission


@pytest.fixture
def labeled(world_files, tmp_path, monkeypatch):
    """Nine triples; the cache is in a fresh folder."""
    monkeypatch.chdir(tmp_path)
    return read_triples(world_files / "validation.jsonl")


@pytest.fixture
def answer(labeled):
    """answer(name, max_length=..., ...): the system's answers to the nine triples."""

    def run(name, stories=None, track=None, meanmax=MeanMax(), **options):
        encoder = deferred("compare", **options)
        system = opening.systems(models=[str(name)], encoder=encoder, meanmax=meanmax)[str(name)]
        return answers_of(system, labeled, name=str(name), stories=stories, track=track)

    return run


@pytest.fixture
def unloadable(monkeypatch):
    """unloadable(): from now on no model can be loaded."""

    def forbid():
        def refuse(*_):
            raise AssertionError("a model is loaded")

        monkeypatch.setattr("narrlit.encoding.model_loading.load_module", refuse)

    return forbid


@pytest.fixture
def by_role(tiny, tmp_path):
    """Folder of a tiny model with a prompt for anchors and another for candidates."""
    folder = Path(shutil.copytree(tiny(), tmp_path / "roles"))
    settings = folder / "config_sentence_transformers.json"
    prompts = {"story": "", "query": "which knight seeks a grail? ", "document": "a diver and a pearl: "}
    settings.write_text(json.dumps({**read_json(settings), "prompts": prompts}))
    return folder


@pytest.mark.parametrize("asymmetric", [False, True])
def test_a_model_is_loaded_once_and_scores_as_in_evaluate(answer, labeled, tiny, by_role, unloadable, asymmetric):
    model = by_role if asymmetric else tiny()
    expected = scores_of(load_encoder(str(model)), labeled)
    first = answer(model)
    unloadable()

    for found in (first, answer(model)):
        np.testing.assert_allclose(found.scores, expected, atol=1e-6)
        assert found.kind == "model"
        assert found.vectors.shape == (9, 3, 32)
        assert found.vectors.dtype == np.float32
        assert found.answers.tolist() == (found.scores[:, 0] > found.scores[:, 1]).tolist()

    if asymmetric:
        assert abs(first.scores - scores_of(load_encoder(tiny()), labeled)).max() > 1e-3


def test_a_story_in_both_roles_has_two_embeddings(by_role, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = load(by_role, cache="embeddings")
    anchor, candidate = encoder.embed_prepared(["A knight.", "A knight."], ["anchor", "candidate"])
    assert abs(anchor - candidate).max() > 1e-3
    np.testing.assert_array_equal(encoder.embed(["A knight."], "candidate"), [candidate])


def test_other_settings_and_other_files_are_other_embeddings(answer, by_role, unloadable):
    longer = answer(by_role)
    shorter = answer(by_role, max_length=24)
    assert abs(longer.scores - shorter.scores).max() > 1e-3

    (by_role / "note.txt").write_text("other contents, other embeddings")
    unloadable()
    with pytest.raises(AssertionError, match="a model is loaded"):
        answer(by_role)


def test_views_and_fusion_change_the_embeddings(answer, labeled, tiny, unloadable):
    fused = {"missing_views": "positional", "fusion": "equal"}
    action = {"missing_views": "positional", "fusion": "action_only"}
    expected = load(tiny(), missing_views="positional", fusion="action_only").score(labeled)
    found = {name: answer(tiny(), **read) for name, read in {"fused": fused, "action": action}.items()}

    np.testing.assert_allclose(found["action"].scores, expected, atol=1e-6)
    assert abs(found["fused"].scores - expected).max() > 1e-3

    unloadable()
    np.testing.assert_array_equal(answer(tiny(), **action).scores, found["action"].scores)


def test_post_processing_depends_on_the_stories_of_its_fit(answer, labeled, tiny, make):
    texts = [
        {"text": f"A {name} seeks a {thing}."} for name in ("knight", "diver") for thing in ("grail", "pearl", "key")
    ]
    make("fit.jsonl", texts)
    read = {"postprocess": "center", "fit_on": "fit.jsonl"}
    expected = load(tiny(), postprocess="center", fit_on="fit.jsonl").score(labeled)
    first = answer(tiny(), **read)

    np.testing.assert_allclose(first.scores, expected, atol=1e-6)
    assert abs(answer(tiny()).scores - expected).max() > 1e-3
    assert abs(answer(tiny("bert", "cls"), **read).scores - expected).max() > 1e-3

    make("fit.jsonl", texts[:3])
    assert abs(answer(tiny(), **read).scores - expected).max() > 1e-3

    transductive = answer(tiny(), postprocess="center", transductive=True)
    assert first.flags == {}
    assert transductive.flags == {"transductive": True}
    assert abs(transductive.scores - expected).max() > 1e-3


def test_meanmax_scores_as_in_evaluate_and_by_its_settings(answer, labeled, tiny, by_role, unloadable):
    expected = MeanMaxSimilarity(load(by_role)).score(labeled)
    first = answer(f"meanmax:{by_role}")
    unloadable()

    for found in (first, answer(f"meanmax:{by_role}")):
        np.testing.assert_allclose(found.scores, expected, atol=1e-6)
    assert found.vectors is None

    pooled = answer(f"meanmax:{by_role}", meanmax=MeanMax("pooled", gamma=0))
    assert abs(pooled.scores - expected).max() > 1e-3


def test_a_run_is_identified_by_the_content_of_its_checkpoint(tmp_path):
    run = tmp_path / "runs/mine/version_0"
    (run / "checkpoints").mkdir(parents=True)
    base = tmp_path / "base"
    base.mkdir()
    record = {"checkpoints": {"best": "checkpoints/best.ckpt"}, "model": {"encoder": {"model": str(base)}}}
    (run / "run.json").write_text(json.dumps(record))
    records = []
    for content in (b"a", b"b", b"a"):
        (run / "checkpoints/best.ckpt").write_bytes(content)
        records.append(load(run.parent).record)

    assert records[0] == records[2] != records[1]
    assert records[0]["model"] == "mine-version_0"
    assert load(run, max_length=20).record == {**records[0], "max_length": 20}

    cut = load(run, long="truncate").record
    assert {**cut, "long": "windows"} == records[0] != cut

    first = load(run).fingerprint
    assert first == load(run.parent).fingerprint != load(run, max_length=20).fingerprint

    (base / "model.safetensors").write_bytes(b"other weights below the checkpoint's head")
    assert load(run).record != records[0]
    assert load(run).fingerprint != first


def test_files_of_answers_embeddings_and_submissions_are_read(answer, labeled, tiny, world_files, tmp_path):
    model = answer(tiny())
    rows = [
        {"text_a_is_closer": bool(a), "score_a": x, "score_b": y}
        for a, (x, y) in zip(model.answers, model.scores.tolist(), strict=True)
    ]
    write_rows(tmp_path / "answers.jsonl", rows)
    write_rows(tmp_path / "bare.jsonl", [{"text_a_is_closer": row["text_a_is_closer"]} for row in rows])
    texts = sorted({text for triple in labeled.texts() for text in triple})
    write_rows(tmp_path / "stories.jsonl", texts)
    vectors = embed_stories(load_encoder(tiny()), texts, progress=False).embeddings
    np.save(tmp_path / "track_b.npy", vectors)
    write_submission(tmp_path / "b.zip", None, vectors)
    write_submission(tmp_path / "a.zip", (~model.answers).tolist(), vectors)
    kinds = {"answers.jsonl": "answers", "bare.jsonl": "answers", "track_b.npy": "vectors", "b.zip": "submission"}
    for name, kind in kinds.items():
        found = answer(tmp_path / name, stories="stories.jsonl")
        assert found.kind == kind
        assert found.correct.tolist() == model.correct.tolist()
        if name == "bare.jsonl":
            assert found.scores is None
            assert found.margin is None
        else:
            np.testing.assert_allclose(found.margin, model.margin, atol=1e-6)

    assert answer(tmp_path / "a.zip", track="a").correct.tolist() == (~model.correct).tolist()
    assert answer(tmp_path / "track_b.npy", stories="stories.jsonl").vectors.shape == (9, 3, 32)


def test_margin_is_that_of_the_right_candidate():
    scores = np.array([[0.9, 0.1], [0.9, 0.1], [0.5, 0.5]])
    found = SystemAnswers.scored("s", "model", np.array([True, False, True]), scores)
    np.testing.assert_allclose(found.margin, [0.8, -0.8, 0])
    assert found.correct.tolist() == [True, False, False]  # a tie is an answer for B
    assert str(found.estimate) == "0.333 [0.061, 0.792], n = 3"
    assert found.figure()["ties"] == 1


def test_rows_have_every_systems_answers(answer, labeled, make):
    make("b.jsonl", [{"text_a_is_closer": True}] * 9)
    systems = [answer("jaccard"), answer("b.jsonl")]
    rows = answer_rows(systems, labeled)

    assert [row["row"] for row in rows] == list(range(1, 10))
    for index, row in enumerate(rows):
        assert row["text_a_is_closer"] == row["b.jsonl.right"] == bool(labeled.labels[index])
        assert row["jaccard.right"] == (
            row["jaccard.margin"] > 0 or (row["jaccard.margin"] == 0 and not labeled.labels[index])
        )
        assert abs(row["jaccard.margin"]) == abs(row["jaccard.score_a"] - row["jaccard.score_b"])
        assert "b.jsonl.margin" not in row


def test_the_flags_of_a_run_are_kept_with_its_answers(tiny, world_files, tmp_path):
    folder = Path(shutil.copytree(tiny(), tmp_path / "run"))
    triples = str(world_files / "validation.jsonl")
    record = {
        "flags": {"trained_on_validation": True, "transductive": False, "mined_validation": True},
        "num_evaluations": 5,
        "data": {"train": {"files": [{"sha256": file_digest(triples), "path": triples}]}},
    }
    (folder / "run.json").write_text(json.dumps(record))
    flags = flags_of(str(folder), triples)

    assert flags.pop("seen_in_training").startswith("trained on these triples")
    assert flags == {"trained_on_validation": True, "mined_validation": True, "num_evaluations": 5}
    assert flags_of(tiny(), triples) == {}


def test_meanmax_needs_a_model_of_whole_texts(answer, tiny, monkeypatch):
    monkeypatch.setattr("narrlit.models.encoder.Encoder.reads", property(lambda self: "sentences"))
    with refused("model_without_passages"):
        answer(f"meanmax:{tiny()}")


@pytest.mark.parametrize(
    ("name", "content", "code", "values"),
    [
        (
            "a.jsonl",
            [{"text_a_is_closer": True}] * 8,
            "answers_per_row",
            {"answers": 8, "source": "validation.jsonl", "rows": 9},
        ),
        (
            "a.jsonl",
            [{"text_a_is_closer": 7}] * 9,
            "answer_not_true_or_false",
            {"path": "a.jsonl", "line": 1, "column": "text_a_is_closer"},
        ),
        ("a.csv", "closer\ntrue\n", "answer_not_true_or_false", {"path": "a.csv", "line": 2}),
        (
            "a.jsonl",
            [{"text_a_is_closer": True, "text_a": "another"}] * 9,
            "answers_to_other_triples",
            {"name": "a.jsonl", "line": 1, "column": "text_a"},
        ),
        ("v.npy", b"broken", "unreadable_array", {"path": "v.npy"}),
        ("z.zip", b"broken", "unreadable_submission", {"path": "z.zip"}),
        ("none.jsonl", None, "no_such_file", {"path": "none.jsonl"}),
        ("none.npy", None, "unreadable_array", {"path": "none.npy", "reason": "no such file or directory"}),
    ],
)
def test_mistakes_in_files_name_file_and_field(answer, make, tmp_path, name, content, code, values):
    if content is not None:
        make(name, content)
    with refused(code, **values):
        answer(tmp_path / name)


@pytest.mark.parametrize(
    ("vectors", "texts", "code", "values"),
    [
        (np.ones((2, 3)), None, "embeddings_need_stories", {"name": "v.npy"}),
        (np.ones((2, 3)), ["a", "b", "c"], "number_of_embeddings", {"embeddings": 2, "path": "s.jsonl", "stories": 3}),
        (np.ones((2, 3)), ["a", "b"], "story_without_embedding", {"path": "s.jsonl", "triple": 1}),
        (np.ones(2), ["a", "b"], "not_an_array", {"path": "v.npy"}),
        (np.array([[1, 2], [0, 0]]), ["a", "b"], "unusable_vector", {"path": "v.npy", "row": 2}),
        (np.array([[np.nan, 2], [0, 1]]), ["a", "b"], "unusable_vector", {"row": 1}),
        (np.array([[1, 2], [1, 1e39]]), ["a", "b"], "unusable_vector", {"row": 2}),
        (np.array([[1e-60, 0], [1, 2]]), ["a", "b"], "unusable_vector", {"row": 1}),
    ],
)
def test_mistakes_in_vectors_name_file_and_row(answer, make, tmp_path, vectors, texts, code, values):
    np.save(tmp_path / "v.npy", vectors)
    if texts is not None:
        make("s.jsonl", texts)
    with refused(code, **values):
        answer("v.npy", stories="s.jsonl" if texts else None)


def test_answers_to_a_file_with_broken_rows_are_refused(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = {"anchor_text": "x", "text_a": "y", "text_b": "z", "text_a_is_closer": True}
    labeled = read_triples(make("t.jsonl", [good, {**good, "text_a": ""}]))
    make("a.jsonl", [{"text_a_is_closer": True}] * 2)

    with refused("answers_to_invalid_rows", name="a.jsonl", path="t.jsonl", n=1):
        answers_of("a.jsonl", labeled)


def test_decomposed_copies_of_training_triples_are_seen_in_training(tiny, make, tmp_path):
    texts = ("Amélie perdit la perle.", "Une forêt enneigée.", "Le boulanger de Besançon.")
    row = dict(zip(("anchor_text", "text_a", "text_b"), texts, strict=True)) | {"text_a_is_closer": False}
    train = make("train.jsonl", [row])
    copies = {name: unicodedata.normalize("NFD", text) for name, text in row.items() if isinstance(text, str)}
    folder = Path(shutil.copytree(tiny(), tmp_path / "run"))
    files = [{"sha256": file_digest(train), "path": str(train)}]
    (folder / "run.json").write_text(json.dumps({"data": {"train": {"files": files}}}))

    seen = flags_of(str(folder), str(make("copy.jsonl", [{**copies, "text_a_is_closer": False}])))
    assert seen["seen_in_training"].startswith("trained on 2 pairs of these triples")
    others = [{"anchor_text": texts[0], "text_a": "x", "text_b": "y", "text_a_is_closer": True}]
    assert flags_of(str(folder), str(make("other.jsonl", others))) == {}


def test_vectors_of_decomposed_stories_belong_to_their_triples(make, tmp_path):
    texts = ("Amélie perdit la perle.", "Une forêt enneigée.", "Le boulanger de Besançon.")
    row = dict(zip(("anchor_text", "text_a", "text_b"), texts, strict=True)) | {"text_a_is_closer": False}
    labeled = read_triples(make("t.jsonl", [row]))
    stories = make("s.jsonl", [{"text": unicodedata.normalize("NFD", text)} for text in reversed(texts)])
    np.save(tmp_path / "v.npy", np.eye(3, dtype=np.float32))
    answers = answers_of(str(tmp_path / "v.npy"), labeled, stories=str(stories))
    assert answers.vectors[0].tolist() == np.eye(3)[::-1].tolist()
