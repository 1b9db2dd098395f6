"""Fits with several seeds: run, kept, refused; rows of an ablation with several seeds."""

import pytest
from json_files import read_json
from run_helpers import fit_arguments

from narrlit.experiments import ablation
from narrlit.experiments.ablation import System, ablate
from narrlit.experiments.outcome import Outcome, Scored
from narrlit.experiments.plan import FinishedFit, Plan
from narrlit.experiments.run import Run
from narrlit.metrics.significance import AccuracySummary
from narrlit.models.run_file import RunFile

N = 10


def test_rows_of_an_ablation_are_grouped_by_system(monkeypatch, tmp_path):
    systems = [System(name, None, {"seed_everything": 42, "a": 1}, [], {}, "") for name in ("full", "scale")]
    wrong = {"full_seed_7": [0], "scale_seed_7": [0, 1], "full_seed_8": [], "scale_seed_8": [5]}

    class Fit(FinishedFit):
        @property
        def outcome(self):
            positions = set(wrong[self.planned.name])
            scored = Scored(AccuracySummary(N, N - len(positions)), positions)
            return Outcome({"last_epoch": scored, "best_epoch": scored}, 1)

    def run(plan):
        configs = [fit.config for fit in plan.fits]
        assert configs[1:3] == [{"seed_everything": 7, "a": 1}, {"seed_everything": 8, "a": 1}]
        return [Fit(fit, Run(plan.folder / fit.name, RunFile())) for fit in plan.fits]

    monkeypatch.setattr(ablation, "find_overlays", lambda *_: {})
    monkeypatch.setattr(ablation, "read_systems", lambda *_: systems)
    monkeypatch.setattr(Plan, "run", run)
    result = ablate([], folder=tmp_path, seeds=[7, 8])
    content = result.report.content

    assert content["systems"]["full"]["last_epoch"]["by_seed"] == {7: 0.9, 8: 1.0}
    assert content["systems"]["scale"]["last_epoch"]["by_seed"] == {7: 0.8, 8: 0.9}

    table = result.table().query("metric == 'accuracy_last_epoch'")
    assert table[["system", "seed", "value"]].to_numpy().tolist()[1:3] == [["scale", 7, 0.8], ["full", 8, 1.0]]


@pytest.mark.long
def test_finished_seeds_of_a_fit_are_not_repeated(tiny, narrlit, tmp_path):
    arguments = [*fit_arguments(tiny(), tmp_path, epochs=1), "--trainer.logger.init_args.version", "null"]
    found = narrlit(*arguments, "--seeds", "1,2")
    assert found.code == 0, found.err

    folder = tmp_path / "tiny/seeds"
    records = [read_json(folder / f"seed_{seed}/run.json") for seed in (1, 2)]
    assert [record["seed"] for record in records] == [1, 2]

    content = read_json(folder / "seeds.json")
    for name, key in (("trained", "best"), ("frozen", "untrained")):
        by_seed = content["systems"][name]["best_epoch"]["by_seed"]
        assert by_seed == {str(record["seed"]): record[key]["accuracy"] for record in records}

    assert found.out == (folder / "seeds.md").read_text() + f"runs: {folder}\n"

    again = narrlit(*arguments, "--seeds=1,2")
    assert again.code == 0
    assert again.err.count("already finished") == 2
    assert again.out == found.out

    other = narrlit(*arguments, "--seeds", "1,2", "--model.init_args.scale", "3")
    assert "choose another trainer.logger.init_args.version or remove" in other.err.strip().splitlines()[-1]

    refused = narrlit(*arguments, "--seeds", "1,2", "--trainer.logger", "false")
    assert refused.code == 2
    assert "leave trainer.logger to the config" in refused.err
    assert narrlit(*arguments, "--seeds").code == 2
    assert "seed_everything: 42" in narrlit(*arguments, "--seeds", "1,2", "--print_config").out
