"""Fits with several seeds: run, kept, refused; rows of an ablation with several seeds."""

import pytest
from finished_fits import finished_fit, in_all_epochs
from json_files import read_json
from refusals import assert_refusal
from results import check_result
from run_helpers import fit_arguments

from narrlit.experiments import ablation
from narrlit.experiments.ablation import AblatedSystem, ablate
from narrlit.experiments.plan import Plan
from narrlit.results import Result


def test_rows_of_an_ablation_are_grouped_by_system(monkeypatch, tmp_path):
    systems = [AblatedSystem(name, None, {"seed_everything": 42, "a": 1}, [], {}, "") for name in ("full", "scale")]
    wrong = {"full_seed_7": [0], "scale_seed_7": [0, 1], "full_seed_8": [], "scale_seed_8": [5]}

    def run(plan):
        configs = [fit.config for fit in plan.fits]
        assert configs[1:3] == [{"seed_everything": 7, "a": 1}, {"seed_everything": 8, "a": 1}]
        fits = []
        for fit in plan.fits:
            answers = in_all_epochs(wrong[fit.name])
            fits.append(finished_fit(plan.folder, fit.name, answers, system=fit.system, seed=fit.seed))
        return fits

    monkeypatch.setattr(ablation, "find_overlays", lambda *_: {})
    monkeypatch.setattr(ablation, "read_systems", lambda *_: systems)
    monkeypatch.setattr(Plan, "run", run)
    result = ablate("configs/quickstart.yaml", out=tmp_path, seeds=[7, 8])

    def value(system, **seed):
        return result.estimate(system, "accuracy_last_epoch", **seed).value

    assert [value("full", seed=seed) for seed in (7, 8)] == [0.9, 1.0]
    assert [value("scale", seed=seed) for seed in (7, 8)] == [0.8, 0.9]
    assert value("full") == pytest.approx(0.95)
    last = result.differences.iloc[0]
    assert (last["system"], last["against"], last["value"]) == ("scale", "full", pytest.approx(-0.1))
    assert "single_fits" not in [note.code for note in result.notes]
    check_result(result, tmp_path / "out")


@pytest.mark.long
def test_finished_seeds_of_a_fit_are_not_repeated(tiny, narrlit, tmp_path):
    arguments = [*fit_arguments(tiny(), tmp_path, epochs=1), "--trainer.logger.init_args.version", "null"]
    found = narrlit(*arguments, "--seeds", "1,2")
    assert found.code == 0, found.err

    folder = tmp_path / "tiny/seeds"
    records = [read_json(folder / f"seed_{seed}/run.json") for seed in (1, 2)]
    assert [record["seed"] for record in records] == [1, 2]

    result = Result.read(folder / "seeds.json")
    for metric, key in (("accuracy_best_epoch", "best"), ("accuracy_reference", "untrained")):
        for record in records:
            assert result.estimate(metric=metric, seed=record["seed"]).value == record[key]["accuracy"]
    assert set(result.differences["against"]) == {"reference"}
    assert set(result.answers["run"]) == {"seed_1", "seed_2"}

    assert found.out == (folder / "seeds.md").read_text() + f"runs: {folder}\n"

    again = narrlit(*arguments, "--seeds=1,2")
    assert again.code == 0
    assert again.err.count("already finished") == 2
    assert again.out == found.out

    other = narrlit(*arguments, "--seeds", "1,2", "--model.init_args.scale", "3")
    assert_refusal(other.error, "other_configuration", option="trainer.logger.init_args.version")
    assert "choose another --trainer.logger.init_args.version or remove" in other.err.strip().splitlines()[-1]

    refused = narrlit(*arguments, "--seeds", "1,2", "--trainer.logger", "false")
    assert refused.code == 2
    assert_refusal(refused.error, "seeds_need_folder")
    assert narrlit(*arguments, "--seeds").code == 2
    assert "seed_everything: 42" in narrlit(*arguments, "--seeds", "1,2", "--print_config").out
