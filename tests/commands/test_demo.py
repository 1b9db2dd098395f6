"""The steps of the demo, with a short training; `make demo` runs the long one."""

import shlex

import pytest
from command_lines import last_of
from json_files import read_json
from page_files import carried

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
        options = more.get(words[0] if command == "data" else command, "")
        long_way(*last_of(command, *words, *options.split()))

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
    report = carried((tmp_path / "a b/report.html").read_text(encoding="utf-8"))["answers"]["report"]
    assert report["findings"][0].startswith("a b/quickstart: ")
    assert read_json(tmp_path / "a b/quickstart/run.json")["status"] == "finished"

    again = narrlit("demo", "--out", "a b")
    assert again.code == 2
    assert "not empty" in again.err
