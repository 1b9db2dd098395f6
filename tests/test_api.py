"""Public API: fast to import, and equal to the functions behind it."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from refusals import refused
from results import check_result
from run_helpers import fit_arguments

import narrlit
from narrlit import losses
from narrlit.commands import COMMANDS, TRAINING
from narrlit.errors import ModelError

KNIGHTS = [
    "A knight seeks the grail for years, loses all he owns, and finds it at home.",
    "A collector hunts a lost painting for years, spends all she owns, and finds it in her own attic.",
    "A knight steals the grail, sells it, and buys a castle.",
]


@pytest.fixture(scope="module")
def encoder():
    return narrlit.load("minilm")


def test_import_loads_no_library():
    code = "import sys, narrlit; print(sorted({'numpy', 'torch', 'lightning', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_reads_cached_vectors_loads_no_library_of_models():
    code = (
        "import sys, narrlit; names = [narrlit.evaluate, narrlit.compare, narrlit.load, narrlit.Index]; "
        "print(sorted({'transformers', 'sentence_transformers', 'peft', 'lightning'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_used():
    for name in narrlit.__all__:
        assert getattr(narrlit, name) is not None
        assert name in dir(narrlit)
    with pytest.raises(AttributeError, match="No narrlit attribute simliarity"):
        narrlit.simliarity  # noqa: B018


def test_every_command_has_a_row_with_its_functions_in_the_docs():
    page = (Path(__file__).parents[1] / "docs/python.md").read_text(encoding="utf-8")
    table = page.partition("## Every command\n")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.strip().splitlines()[2:]]
    commands = [name for cell, _ in rows for name in re.findall(r"`((?:data )?[a-z-]+)`", cell)]

    assert sorted(commands) == sorted([*TRAINING, *(command.name for command in COMMANDS)])

    functions = {name for _, cell in rows for name in re.findall(r"`narrlit\.(\w+)", cell)}
    assert functions <= set(narrlit.__all__)

    without = [cells[0].strip() for cells in rows if "`narrlit." not in cells[1]]
    assert without == ["`demo`"]


def test_losses_are_exported():
    assert len(losses.__all__) >= 12
    modules = {path.stem for path in Path(losses.__file__).parent.glob("*.py")} - {"__init__"}
    assert {getattr(losses, name).__module__.rpartition(".")[2] for name in losses.__all__} == modules


def test_similarity_is_the_cosine_of_embeddings(encoder):
    cosines = narrlit.similarity(KNIGHTS, encoder=encoder)
    embeddings = narrlit.embed(KNIGHTS, encoder=encoder)
    assert embeddings.shape == (3, 384)
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(cosines, embeddings @ embeddings.T, atol=1e-6)
    np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-6)
    assert cosines.max() <= 1
    # all-MiniLM-L6-v2 by sentence-transformers
    np.testing.assert_allclose(cosines.round(2)[0], [1, 0.42, 0.74], atol=1e-6)


def test_a_single_string_is_refused(encoder):
    with refused("string_instead_of_list"):
        narrlit.embed(KNIGHTS[0], encoder=encoder)


def test_an_unknown_model_is_refused():
    with pytest.raises(ModelError):
        narrlit.embed(KNIGHTS, encoder="no-such-folder/of-a-model")


def test_evaluate_counts_as_the_task_does(encoder, tmp_path):
    anchor, similar, dissimilar = KNIGHTS
    path = tmp_path / "triples.jsonl"
    row = '{{"anchor_text": "{}", "text_a": "{}", "text_b": "{}", "text_a_is_closer": {}}}\n'
    # wrong (words win), right, and a tie, which counts as B
    rows = [
        row.format(anchor, similar, dissimilar, "true"),
        row.format(anchor, similar, dissimilar, "false"),
        row.format(anchor, similar, similar, "false"),
    ]
    path.write_text("".join(rows), encoding="utf-8")
    result = narrlit.evaluate(path, encoder)
    accuracy = result.estimate()

    assert (accuracy.value, accuracy.n) == (2 / 3, 3)
    assert accuracy.low < accuracy.value < accuracy.high
    assert result.figures["ties"].tolist() == [1]
    assert narrlit.evaluate(narrlit.read_triples(path), encoder).estimate() == accuracy


def test_triples_without_labels_are_refused(encoder, tmp_path):
    path = tmp_path / "triples.jsonl"
    path.write_text('{"anchor_text": "a b", "text_a": "c d", "text_b": "e f"}\n', encoding="utf-8")
    with refused("no_labels"):
        narrlit.evaluate(path, encoder)


def test_python_alone_evaluates_compares_and_submits(world_files, tiny, tmp_path):
    triples = world_files / "validation.jsonl"
    stories = world_files / "stories.jsonl"
    encoder = narrlit.load(tiny(), cache=tmp_path / "cache")
    result = narrlit.evaluate(triples, encoder)

    assert result.answers["text_a_is_closer"].tolist() == [bool(x) for x in narrlit.read_triples(triples).labels]
    accuracy = result.estimate()
    check_result(result, tmp_path / "out")

    comparison = narrlit.compare(triples, {"mine": encoder, "words": "tfidf"}, by=["overlap"])
    table = comparison.table()
    assert table["system"].tolist()[:2] == ["mine", "words"]
    assert comparison.estimate("mine") == accuracy
    assert len(comparison.answers) == accuracy.n
    assert "overlap" in comparison.shown_tables()
    assert [label.get_text() for label in comparison.plot().get_yticklabels()][:2] == ["mine", "words"]
    with refused("system_twice", name="tfidf"):
        narrlit.compare(triples, ["tfidf", "tfidf"])
    with refused("unknown_facet", column="knd"):
        narrlit.compare(triples, ["tfidf"], by=["knd"])

    submission = narrlit.submit(encoder, track_a=triples, track_b=stories, out=tmp_path / "s.zip")
    right = [a == (b == 1) for a, b in zip(submission.answers, narrlit.read_triples(triples).labels, strict=True)]
    assert np.mean(right) == accuracy.value
    np.testing.assert_allclose(submission.embeddings, encoder.embed(narrlit.read_stories(stories)), atol=1e-6)
    assert "valid, Track A 9 rows, Track B" in str(submission)
    with refused("track_needs_model"):
        narrlit.submit("tfidf", track_b=stories, out=tmp_path / "t.zip")


def test_python_alone_trains_a_run_that_is_a_model(tiny, world_files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = fit_arguments(tiny(), tmp_path, epochs=1)
    configs = [word for name, word in itertools.pairwise(arguments) if name == "--config"]
    settings = {
        name.removeprefix("--"): value
        for name, value in itertools.pairwise(arguments)
        if name.startswith("--") and name != "--config"
    }
    settings["trainer.max_epochs"] = 1
    run = narrlit.fit(configs, settings)

    assert run.folder == tmp_path / "tiny"
    assert run.status == "finished"
    assert run.best.n == 9
    assert len(run.table()) == 1
    assert str(run).startswith(f"{run.folder}: finished, best validation accuracy")

    again = narrlit.Run.read(run.folder)
    assert again.record == run.record

    result = narrlit.evaluate(world_files / "validation.jsonl", run)
    np.testing.assert_allclose(narrlit.embed(KNIGHTS, run), narrlit.load(str(run.folder)).embed(KNIGHTS), atol=1e-6)
    assert result.estimate().n == 9
    with refused("other_fit"):
        narrlit.fit(configs, settings)

    content = yaml.safe_load((run.folder / "config.yaml").read_text())
    last = run.folder / "checkpoints/last.ckpt"
    further = narrlit.fit(content, {"trainer.max_epochs": 2}, checkpoint=last)
    assert (further.folder, len(further.table())) == (run.folder, 2)


def test_a_collection_in_memory_is_mapped_paired_and_measured(tmp_path):
    texts = [
        "A girl lost a slipper at the ball. It rained in the evening.",
        "At the dance the girl left her shoe behind. Rain fell all night.",
        "The bank lowered its rates. Trains to the north were late again.",
        "Interest rates fell at the bank. No train came.",
    ]
    tales = narrlit.Collection.of(pd.DataFrame({"id": list("abcd"), "text": texts, "kind": list("xxyy")}))

    assert len(tales) == 4
    assert tales["c"].text == texts[2]
    assert "4 stories" in repr(tales)
    with pytest.raises(KeyError, match="no story 'e'"):
        tales["e"]

    pairs = narrlit.pairs(tales, k=1, threshold=0.4)
    assert pairs.table()[["id_a", "id_b"]].to_numpy().tolist()[0] in (["a", "b"], ["c", "d"])
    assert "## Groups of retellings" in str(pairs)

    drawn = narrlit.map_stories(tales, group="kind", k=2, accuracy="0.5, as a test says")
    assert "0.5, as a test says" in drawn._repr_html_()
    assert [path.name for path in drawn.write(tmp_path / "m.html")] == [
        "m.html",
        "m-neighbors.csv",
        "m-groups.csv",
        "m.svg",
    ]
    assert len(drawn.table()) == 8
    assert narrlit.diversity(tales).stories == 4

    (tmp_path / "qrels.tsv").write_text("a\tb\t1\nc\td\t1\n")
    found = narrlit.retrieval({"minilm": tales}, tmp_path / "qrels.tsv", baseline="tfidf")
    assert set(found.table()["system"]) == {"passages", "tfidf"}
    assert found.answers["query"].tolist() == ["a", "c"]

    found.write(tmp_path / "out")
    assert (tmp_path / "out/retrieval.md").read_text() == f"{found}\n"
