"""narrlit report: its triples, one page of models and baselines, and mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest
from page_files import carried
from refusals import assert_refusal

from narrlit.data.readers import read_triples
from narrlit.data.schema import StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.data.writers import write_rows
from narrlit.experiments import system_report
from narrlit.experiments.run import Run
from narrlit.models.run_file import RunFile
from narrlit.submission import write_submission


def test_a_model_and_a_baseline_in_one_page(narrlit, world_files, tiny, tmp_path):
    triples = world_files / "validation.jsonl"
    report = ("report", tiny(), "jaccard", "--triples", triples, "--projection", "pca", "--out", "new/report.html")
    found = narrlit(*report)

    assert found.code == 0, found.err

    page = (tmp_path / "new/report.html").read_text()
    jaccard = json.loads(narrlit("evaluate", triples, "--baseline", "jaccard", "--json").out)
    assert f"{jaccard['figures'][0]['value']:.3f} [" in page
    kinds = {section["kind"] for section in carried(page)["answers"]["report"]["sections"]}
    assert {"map", "distances", "errors", "check"} <= kinds


def test_a_submission_is_reported_with_its_track(narrlit, world_files, tmp_path):
    triples = world_files / "validation.jsonl"
    texts = [text for triple in read_triples(triples).texts() for text in triple]
    write_rows(tmp_path / "stories.jsonl", texts)
    vectors = np.random.default_rng(0).normal(size=(len(texts), 12)).astype(np.float32)
    write_submission(tmp_path / "s.zip", [True] * 9, vectors)
    command = ["report", "s.zip", "--triples", triples, "--projection", "pca", "--out", "r.html"]
    found = narrlit(*command)

    assert found.code == 2
    assert_refusal(found.error, "track_needed", name="s.zip")
    assert "give --track a" in found.err
    assert narrlit(*command, "--stories", "stories.jsonl").code == 0
    assert "vectors of Track B" in (tmp_path / "r.html").read_text()


def run_with(folder, validation):
    folder.mkdir()
    record = {"data": {"validation": validation}, "validations": [], "num_evaluations": 0}
    (folder / "run.json").write_text(json.dumps(record))


def test_without_triples_those_of_the_run_are_taken(narrlit, world_files, tmp_path, monkeypatch):
    made = {"storyworld": {"seed": 5, "triples": 7}}
    run = Run(tmp_path, RunFile.model_validate({"data": {"validation": made}}))
    _, triples = system_report._triples(None, {"r": run})

    assert triples.texts() == synthetic_triples(StoryWorld(5).triples(7, "validation"), StoryTable()).texts()

    run_with(tmp_path / "run", {"files": [{"path": str(world_files / "validation.jsonl"), "sha256": "0", "rows": 9}]})
    monkeypatch.setattr("narrlit.experiments.systems.flags_of", lambda *_: {})
    found = narrlit("report", "jaccard", "run", "--out", "a.html")

    assert "it has no checkpoint yet" in found.err  # so the triples were found


@pytest.mark.parametrize(
    ("arguments", "code", "values"),
    [
        (["jaccard", "--out", "a.html"], "no_recorded_triples", {}),
        (["jaccard", "run", "--out", "a.html"], "triples_of_run_gone", {"name": "run", "path": "gone.jsonl"}),
        (["jaccard", "jaccard", "--out", "a.html"], "system_twice", {"name": "jaccard"}),
        (["jaccard", "--out", "a.pdf"], "wrong_suffix", {"path": "a.pdf"}),
        (["jaccard", "--triples", "TRIPLES", "--by", "genre", "--out", "a.html"], "unknown_facet", {"column": "genre"}),
    ],
)
def test_mistakes_cost_one_line(narrlit, world_files, tmp_path, arguments, code, values):
    run_with(tmp_path / "run", {"files": [{"path": "gone.jsonl", "sha256": "0", "rows": 9}]})
    found = narrlit("report", *(world_files / "validation.jsonl" if a == "TRIPLES" else a for a in arguments))
    assert found.code == 2
    assert "Traceback" not in found.err
    assert_refusal(found.error, code, **values)
    assert not Path("a.html").exists()
