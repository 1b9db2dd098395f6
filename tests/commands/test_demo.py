"""The steps of the demo, with a short training; `make demo` runs the long one."""

import shlex

import pytest
from command_lines import last_of
from json_files import read_json

from narrlit.commands import demo as module
from narrlit.results import Result

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_the_demo_runs_all_steps_and_ends_with_a_report(narrlit, monkeypatch, tmp_path):
    long_way = module._run

    def shorter(command, *words):
        more = {
            "storyworld": "--train 4 --validation 10 --test 4",
            "fit": "--data.init_args.train 4 --data.init_args.validation 4 --trainer.max_epochs 1",
        }
        long_way(*last_of(command, *words, *more.get(command, "").split()))

    monkeypatch.setattr(module, "_run", shorter)
    found = narrlit("demo", "--out", "a b")

    assert found.code == 0, found.err
    assert shlex.join(["--logdir", "a b"]) in found.out
    figures = Result.read(tmp_path / "a b/compare/compare.json").figures
    accuracies = figures[(figures["subset"] == "all") & (figures["metric"] == "accuracy")].set_index("system")
    systems = ["random", "longer", "jaccard", "tfidf", "minilm", "a b/quickstart"]
    assert (accuracies.loc[systems, "n"] == 10).all()
    for name in (
        "storyworld",
        "quickstart/run.json",
        "model/modules.json",
        "embeddings.npy",
        "submission.zip",
        "compare/compare.json",
        "report.html",
    ):
        assert (tmp_path / "a b" / name).exists(), name
    assert (tmp_path / "a b/compare/compare.md").read_text() in found.out
    assert "a b/quickstart: " in (tmp_path / "a b/report.html").read_text()
    assert read_json(tmp_path / "a b/quickstart/run.json")["status"] == "finished"

    again = narrlit("demo", "--out", "a b")
    assert again.code == 2
    assert "not empty" in again.err
