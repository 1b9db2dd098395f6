"""Fits with several seeds: run, kept, summarized, compared, refused."""

import json
from pathlib import Path

import pytest
from run_helpers import fit_arguments
from scipy import stats

from narrlit.errors import OptionError
from narrlit.experiments import seed_fits as module
from narrlit.experiments.seed_fits import ablate_seeds, crossval_seeds, read_seeds, seeds_report
from narrlit.metrics.significance import AccuracySummary

N = 10


def entry(last, best, reference=None, flags=(), fold=0):
    """What a fit of N triples leaves, from the positions that are wrong after the last and in the best epoch."""
    wrong = {"last_epoch": last, "best_epoch": best, "reference": reference}
    counts = {
        name: None if each is None else AccuracySummary(N, N - len(each)).as_dict() for name, each in wrong.items()
    }
    return {"reference": None, **counts, "wrong": wrong, "flags": list(flags), "num_evaluations": 3, "fold": fold}


def test_mean_and_deviation_are_of_seeds_and_p_is_over_triples():
    base = {1: entry([0, 1, 2, 3], [0]), 2: entry([0, 1, 2, 3, 4], [0])}
    row = {1: entry([3], [0]), 2: entry([9], [0])}
    made = seeds_report({"full": base, "scale": row}, "full")
    last = made.content["systems"]["scale"]["last_epoch"]
    assert (last["by_seed"], last["mean"]) == ({1: 0.9, 2: 0.9}, pytest.approx(0.9))
    assert last["difference"]["mean"] == pytest.approx(0.35)  # +0.3 and +0.4
    assert last["difference"]["standard_deviation"] == pytest.approx(0.1 / 2**0.5)
    right_more = [2, 2, 2, 1, 1, -1]  # triples 0 to 4 and 9, over both seeds
    expected = stats.permutation_test((right_more,), sum, permutation_type="samples", n_resamples=9999).pvalue
    assert last["difference"]["p"] == pytest.approx(expected)
    assert made.content["systems"]["full"]["last_epoch"]["difference"] is None
    assert made.content["systems"]["scale"]["best_epoch"]["difference"]["p"] == 1.0
    assert made.content["systems"]["full"]["last_epoch"]["standard_deviation"] == pytest.approx(0.1 / 2**0.5)
    text = made.markdown()
    assert "| scale  | 0.900  | 0.900  | 0.900 ± 0.000 |" in text
    assert f"| +0.350 ± 0.071, p = {expected:.3f} |" in text
    assert [(record["system"], record["seed"]) for record in made.records][1:3] == [("full", 2), ("scale", 1)]


def test_nan_and_contamination_are_shown():
    broken = entry([], [])
    broken["last_epoch"] = AccuracySummary(N, 0, undefined=1).as_dict()
    broken["wrong"]["last_epoch"] = None
    results = {"full": {1: entry([0], [0]), 2: entry([0], [0])}, "x": {1: broken, 2: entry([], [], flags=["mined"])}}
    text = seeds_report(results, "full").markdown()
    assert "none: scores are NaN, p unknown" in text
    assert "Flags of the runs: mined." in text
    results["x"][2]["flags"] = ["trained_on_validation"]
    assert "No result: validation triples were trained on." in seeds_report(results, "full").markdown()


@pytest.mark.parametrize("text", ["1", "1,1", "1,x", "1,-2", "1,,2", ""])
def test_seeds_are_different_whole_numbers(text):
    with pytest.raises(OptionError, match="give two or more different whole numbers, such as 1,2,3"):
        read_seeds(text)


def test_rows_of_an_ablation_are_grouped_by_system(monkeypatch):
    systems = [module.System(name, None, {"seed_everything": 42, "a": 1}, [], {}, "") for name in ("full", "scale")]
    wrong = {"full_seed_7": [0], "scale_seed_7": [0, 1], "full_seed_8": [], "scale_seed_8": [5]}

    def fit_systems(repeated, folder):
        assert [one.config for one in repeated[1:3]] == [{"seed_everything": 7, "a": 1}, {"seed_everything": 8, "a": 1}]
        return [entry(wrong[one.name], wrong[one.name]) for one in repeated]

    monkeypatch.setattr(module, "find_overlays", lambda fit, ablations: {})
    monkeypatch.setattr(module, "read_systems", lambda fit, overlays: systems)
    monkeypatch.setattr(module, "fit_systems", fit_systems)
    content = ablate_seeds([], Path("out"), None, [7, 8]).content
    assert content["systems"]["full"]["last_epoch"]["by_seed"] == {7: 0.9, 8: 1.0}
    assert content["systems"]["scale"]["last_epoch"]["by_seed"] == {7: 0.8, 8: 0.9}


def test_folds_are_pooled_by_seed_and_compared_with_the_frozen_encoder(monkeypatch):
    config = {"seed_everything": 42}

    def fit_folds(folder, prefix, config, descriptions):
        assert prefix == f"seed_{config['seed_everything']}_"
        return [entry([0], [0], reference=[0, 1], fold=0), entry([0, 3], [3], reference=[0, 2], fold=1)]

    monkeypatch.setattr(module, "plan_folds", lambda *_: (config, []))
    monkeypatch.setattr(module, "fit_folds", fit_folds)
    systems = crossval_seeds([], Path("out"), {}, [1, 2]).content["systems"]
    assert systems["trained"]["last_epoch"]["by_seed"] == {1: 17 / 20, 2: 17 / 20}
    assert systems["frozen"]["last_epoch"]["by_seed"] == {1: 16 / 20, 2: 16 / 20}
    # Position 0 is another triple in each fold: of fold 1, 2 is won and 3 lost; of fold 0, 1 is won.
    assert systems["trained"]["last_epoch"]["difference"]["p"] == 1.0
    assert systems["trained"]["last_epoch"]["difference"]["mean"] == pytest.approx(0.05)


@pytest.mark.slow
def test_seeds_of_a_fit_are_runs_that_stay(tiny, narrlit, tmp_path):
    arguments = [*fit_arguments(tiny(), tmp_path, epochs=1), "--trainer.logger.init_args.version", "null"]
    found = narrlit(*arguments, "--seeds", "1,2")
    assert found.code == 0, found.err
    folder = tmp_path / "tiny/seeds"
    records = [json.loads((folder / f"seed_{seed}/run.json").read_text()) for seed in (1, 2)]
    assert [record["seed"] for record in records] == [1, 2]
    content = json.loads((folder / "seeds.json").read_text())
    for name, key in (("trained", "best"), ("frozen", "untrained")):
        by_seed = content["systems"][name]["best_epoch"]["by_seed"]
        assert by_seed == {str(record["seed"]): record[key]["accuracy"] for record in records}
    assert found.out == (folder / "seeds.md").read_text() + f"runs: {folder}\n"
    again = narrlit(*arguments, "--seeds=1,2")
    assert (again.code, again.err.count("already finished"), again.out) == (0, 2, found.out)
    other = narrlit(*arguments, "--seeds", "1,2", "--model.init_args.scale", "3")
    assert "choose another --trainer.logger.init_args.version or remove" in other.err.strip().splitlines()[-1]
    refused = narrlit(*arguments, "--seeds", "1,2", "--trainer.logger", "false")
    assert (refused.code, "leave --trainer.logger to the config" in refused.err) == (2, True)
    assert narrlit(*arguments, "--seeds").code == 2
    assert "seed_everything: 42" in narrlit(*arguments, "--seeds", "1,2", "--print_config").out
