"""The demo's way, with a short training; `make demo` is the long one."""

import json
import re

import pytest

from narrlit.commands import demo as module

pytestmark = pytest.mark.slow


def test_the_demo_goes_the_whole_way_and_ends_with_a_table(narrlit, monkeypatch, tmp_path):
    long_way = module._do

    def shorter(command):
        command = re.sub(r"--test 50", "--train 8 --validation 20 --test 6", command)
        if command.startswith("fit"):
            command += " --data.init_args.train 8 --data.init_args.validation 4 --trainer.max_epochs 1"
        long_way(command)

    monkeypatch.setattr(module, "_do", shorter)
    found = narrlit("demo", "--out", "d")
    assert found.code == 0, found.err
    for name in ("random", "longer", "jaccard", "tfidf", "minilm, frozen", "minilm, trained"):
        assert re.search(rf"\| {name} +\| +[01]\.\d+ \| \[[01]\.\d+, [01]\.\d+\] \|", found.out), found.out
    for name in ("storyworld", "quickstart/run.json", "model/modules.json", "vectors.npy", "submission.zip"):
        assert (tmp_path / "d" / name).exists(), name
    assert (tmp_path / "d/accuracies.md").read_text() in found.out
    assert json.loads((tmp_path / "d/quickstart/run.json").read_text())["status"] == "finished"
    again = narrlit("demo", "--out", "d")
    assert again.code == 2
    assert "not empty" in again.err
