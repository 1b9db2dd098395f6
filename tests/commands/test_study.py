"""A study without fits: what is tried next, what counts, what is pruned, and what a killed process leaves."""

import json

import pytest

from narrlit.commands.search_space import Choices, Range
from narrlit.commands.study import Study
from narrlit.commands.trials import Outcome

SPACE = {"a.rate": Range(1e-5, 1e-1, log=True), "b.size": Choices((4, 8)), "c.scale": Range(1, 30)}
TRIALS = 14  # more than the sampler's random ones


@pytest.fixture
def open_study(tmp_path):
    """open_study(name, seed): the study of that folder, begun or gone on with."""

    def run(name="s", seed=42, **pruner):
        (tmp_path / name).mkdir(exist_ok=True)
        space = {name: found.distribution() for name, found in SPACE.items()}
        return Study(tmp_path / name, space, seed, {"n_startup_trials": 2, "n_warmup_steps": 1, **pruner})

    return run


def looks(*correct):
    return [{"epoch": e, "n": 10, "correct": c, "accuracy": c / 10, "ties": 0} for e, c in enumerate(correct)]


def accuracy_of(settings):
    return round(10 - abs(settings["c.scale"] - 12) / 3)


def go_on(study, until):
    while study.ended < until:
        trial = study.ask()
        study.tell(trial, Outcome("finished", looks(1, accuracy_of(trial.params))))


def settings(study):
    return [entry["settings"] for entry in study.entries() if entry["status"] != "interrupted"]


def test_a_study_that_goes_on_tries_what_the_unbroken_one_tries(open_study):
    whole = open_study("whole")
    go_on(whole, TRIALS)
    for stop in (1, 3, 6, 11, 12, TRIALS):
        broken = open_study("broken")
        go_on(broken, stop)
        killed = broken.ask().params  # and never told
        if stop < TRIALS:
            assert killed == settings(whole)[stop]
    assert settings(broken) == settings(whole)
    again = open_study("again", seed=43)
    go_on(again, 3)
    assert settings(again) != settings(whole)[:3]
    first = settings(whole)[:10]
    assert len({tuple(one.values()) for one in first}) == 10


def test_what_a_killed_process_left_is_tried_again_once(open_study, tmp_path):
    study = open_study()
    go_on(study, 1)
    killed = study.ask()
    (tmp_path / "s/trial_0001").mkdir()
    (tmp_path / "s/trial_0001/run.json").write_text(json.dumps({"status": "running", "validations": looks(3)}))
    open_study()
    study = open_study()  # twice: the settings wait, and are not queued again
    assert study.ended == 1
    left = study.entries()[1]
    assert (left["status"], left["looks"], left["settings"]) == ("interrupted", looks(3), killed.params)
    repeat = study.ask()
    assert (repeat.number, repeat.params) == (2, killed.params)
    study = open_study()  # the repeat is killed, too
    repeat = study.ask()
    assert (repeat.number, repeat.params) == (3, killed.params)
    ended = study.tell(repeat, Outcome("finished", looks(3, 5)))
    assert (ended["repeats"], ended["best"]["accuracy"], ended["run"]) == (2, 0.5, "trial_0003")
    assert study.ask().params != killed.params
    assert [entry["status"] for entry in study.entries()] == ["finished", "interrupted", "interrupted", "finished"]
    assert study.ended == 2


def test_all_that_ended_by_itself_counts(open_study):
    study = open_study()
    for outcome in (
        Outcome("pruned", looks(2), "after epoch 0"),
        Outcome("failed", [{"epoch": 0, "n": 10, "correct": 0, "accuracy": None}], "scores are NaN"),
        Outcome("finished", looks(4, 9, 6)),
    ):
        study.tell(study.ask(), outcome)
    assert study.ended == 3
    entries = open_study().entries()
    assert [entry["status"] for entry in entries] == ["pruned", "failed", "finished"]
    assert [entry["reason"] for entry in entries] == ["after epoch 0", "scores are NaN", None]
    assert [entry["best"] and entry["best"]["accuracy"] for entry in entries] == [0.2, None, 0.9]
    assert entries[2]["best"]["epoch"] == 1


def test_a_trial_below_the_median_is_to_end(open_study):
    study = open_study()
    for at, correct in enumerate(((0.1, 0.5, 0.6), (0.3, 0.7, 0.8))):
        trial = study.ask()
        advice = study.advice(trial)
        assert not any(advice(epoch, accuracy) for epoch, accuracy in enumerate(correct)), at  # too few to compare with
        study.tell(trial, Outcome("finished", looks(*(10 * c for c in correct))))
    bad, good = study.ask(), study.ask()
    assert [study.advice(bad)(epoch, 0.1 * epoch) for epoch in (0, 1)] == [False, True]  # the first epoch is warm-up
    assert not any(study.advice(good)(epoch, 0.65) for epoch in (0, 1))
