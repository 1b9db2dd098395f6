import json
import math
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from narrlit.metrics.triples import AccuracySummary, TripleAccuracy


def triples(n=30, seed=0):
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(0, 5, (n,), generator=generator) / 4 for _ in range(2))
    return a, b, torch.rand(n, generator=generator) < 0.5


def counts(metric):
    summary = metric.summary()
    return summary.n, summary.correct, summary.ties


def test_batches_give_the_accuracy_of_all_triples():
    a, b, labels = triples()
    whole = TripleAccuracy()
    batched = TripleAccuracy()
    stepped = TripleAccuracy()
    whole.update(a, b, labels)
    for part in (slice(0, 1), slice(1, 17), slice(17, 17), slice(17, None)):
        batched.update(a[part], b[part], labels[part])
        stepped(a[part], b[part], labels[part])

    correct = ((a > b) == labels).sum().item()
    ties = (a == b).sum().item()

    assert counts(whole) == (30, correct, ties)
    assert counts(batched) == counts(whole)
    assert counts(stepped) == counts(whole)
    assert whole.compute().item() == pytest.approx(correct / 30)
    assert batched.compute() == whole.compute()
    assert stepped.compute() == whole.compute()


@pytest.mark.parametrize(("label", "accuracy"), [(True, 0.0), (False, 1.0)])
def test_a_tie_is_an_answer_for_b(label, accuracy):
    metric = TripleAccuracy()
    metric.update(torch.tensor([0.5]), torch.tensor([0.5]), torch.tensor([label]))
    assert metric.compute().item() == accuracy
    assert metric.summary().ties == 1


def test_rows_that_are_not_counted_are_ignored():
    a, b, labels = triples()
    counted = torch.rand(30, generator=torch.Generator().manual_seed(9)) < 0.5
    masked = TripleAccuracy()
    cut = TripleAccuracy()
    masked.update(a, b, labels, counted)
    cut.update(a[counted], b[counted], labels[counted])

    assert counts(masked) == counts(cut)

    masked.update(a, b, labels, torch.zeros(30, dtype=torch.bool))
    assert counts(masked) == counts(cut)


def test_without_triples_accuracy_is_nan():
    metric = TripleAccuracy()
    metric.update(*(torch.zeros(0) for _ in range(2)), torch.zeros(0, dtype=torch.bool))
    assert math.isnan(metric.compute().item())
    assert str(metric.summary()) == "no triples"
    assert math.isnan(metric.summary().accuracy)
    assert metric.summary().interval == (0.0, 1.0)
    assert json.loads(json.dumps(metric.summary().as_dict(), allow_nan=False))["accuracy"] is None


def test_summary_shows_accuracy_interval_and_ties():
    assert str(AccuracySummary(n=200, correct=110)) == "0.550 [0.481, 0.617] (110 of 200)"
    assert str(AccuracySummary(200, 110, 2)).endswith("(110 of 200, 2 ties)")

    values = AccuracySummary(200, 110, 2).as_dict()
    assert values["n"] == 200
    assert values["correct"] == 110
    assert values["accuracy"] == 0.55
    assert values["ties"] == 2
    assert values["interval"] == pytest.approx([0.481, 0.617], abs=5e-4)


@pytest.mark.parametrize("place", [0, 1])
def test_nan_scores_are_refused(place):
    scores = [torch.tensor([0.1, 0.2]), torch.tensor([0.3, 0.4])]
    scores[place][1] = float("nan")
    metric = TripleAccuracy()

    with pytest.raises(ValueError, match="NaN"):
        metric.update(*scores, torch.tensor([True, False]))
    assert metric.total.item() == 0


def test_shapes_and_dtypes_that_do_not_match_are_refused():
    two = torch.zeros(2)
    flags = torch.ones(2, dtype=torch.bool)
    metric = TripleAccuracy()

    with pytest.raises(ValueError, match="must be bool"):
        metric.update(two, two, torch.tensor([1, -1]))
    for wrong in ((two[:1], two, flags), (two, two, flags[:1]), (two[:, None], two[:, None], flags[:, None])):
        with pytest.raises(ValueError, match=r"must all be \(N,\)"):
            metric.update(*wrong)


def work(rank, folder):
    torch.set_num_threads(1)  # a team of threads does not survive a fork
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    mine = slice(0, 7) if rank == 0 else slice(7, None)
    metric = TripleAccuracy()
    metric.update(*(part[mine] for part in triples()))
    with metric.sync_context():
        within = str(metric.summary())
    assert str(metric.summary()) == within
    assert int(metric.total) == len(triples()[0][mine])
    Path(folder, str(rank)).write_text(f"{within} {float(metric.compute())}")
    dist.barrier()
    dist.destroy_process_group()


def test_two_processes_give_the_same_accuracy_as_one(tmp_path):
    mp.start_processes(work, args=(str(tmp_path),), nprocs=2, start_method="fork")
    whole = TripleAccuracy()
    whole.update(*triples())
    for rank in range(2):
        assert (tmp_path / str(rank)).read_text() == f"{whole.summary()} {float(whole.compute())}"


def test_an_allowed_nan_makes_the_accuracy_undefined():
    metric = TripleAccuracy(allow_nan=True)
    a = torch.tensor([0.5, float("nan")])
    metric.update(a, torch.zeros(2), torch.tensor([True, True]), counted=torch.tensor([True, False]))

    assert metric.summary().accuracy == 1.0  # the NaN filled up a share, and does not count

    metric.update(a, torch.zeros(2), torch.tensor([True, True]))
    found = metric.summary()
    assert found.n == 3
    assert found.undefined == 1
    assert math.isnan(found.accuracy)
    assert torch.isnan(metric.compute())
    assert found.as_dict()["accuracy"] is None
    assert "1 of 3" in str(found)


def test_nan_scores_of_all_batches_are_counted():
    metric = TripleAccuracy(allow_nan=True)
    for _ in range(2):
        metric.update(torch.tensor([0.5, math.nan]), torch.zeros(2), torch.tensor([True, True]))

    assert metric.summary().undefined == 2


@pytest.mark.parametrize(("ties", "text"), [(1, ", 1 tie)"), (2, ", 2 ties)")])
def test_a_summary_names_its_ties(ties, text):
    assert str(AccuracySummary(n=4, correct=2, ties=ties)).endswith(text)


def test_an_undefined_accuracy_has_no_interval_and_counts_nan_scores():
    values = {"n": 3, "correct": 2, "accuracy": None, "interval": None, "ties": 0, "undefined": 1}
    assert AccuracySummary(n=3, correct=2, undefined=1).as_dict() == values
    assert AccuracySummary(n=3, correct=2, undefined=1).interval == (0, 1)
    assert "undefined" not in AccuracySummary(n=3, correct=2).as_dict()


def test_labels_and_counted_rows_must_each_be_bool():
    two, flags, numbers = torch.zeros(2), torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.long)
    for labels, counted in ((numbers, flags), (flags, numbers)):
        with pytest.raises(ValueError, match="must be bool"):
            TripleAccuracy().update(two, two, labels, counted=counted)
