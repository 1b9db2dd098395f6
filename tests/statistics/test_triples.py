import math
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from narrlit.models.run_file import Evaluation
from narrlit.statistics.estimates import estimate_count
from narrlit.statistics.evaluations import accuracy_text, estimate_of, evaluation_of
from narrlit.statistics.triples import TripleAccuracy

UNDEFINED = {"accuracy": None, "interval": None, "ties": 0}


def triples(n=30, seed=0):
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(0, 5, (n,), generator=generator) / 4 for _ in range(2))
    return a, b, torch.rand(n, generator=generator) < 0.5


def counts(metric):
    evaluation = metric.evaluation()
    return evaluation.n, evaluation.correct, evaluation.ties


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
    assert metric.evaluation().ties == 1


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
    assert not metric.summary().known
    assert metric.evaluation().model_dump(exclude_unset=True) == {**UNDEFINED, "n": 0, "correct": 0}
    assert accuracy_text(metric.evaluation()) == "no triples"


def test_an_evaluation_has_the_accuracy_that_it_was_made_of():
    accuracy = estimate_count(110, 200)
    evaluation = evaluation_of(accuracy, 110, ties=2)

    assert estimate_of(evaluation) == accuracy
    assert evaluation_of(accuracy, 110).ties == 0
    assert estimate_of(Evaluation(n=4, correct=3, accuracy=0.75, interval=[0.3, 0.95])).method == "wilson"
    alone = estimate_of(Evaluation(n=4, correct=3, accuracy=0.75, interval=None))
    assert (alone.value, math.isnan(alone.low), math.isnan(alone.high)) == (0.75, True, True)
    unknown = estimate_of(Evaluation(n=4, correct=3, accuracy=None, interval=None))
    assert all(map(math.isnan, unknown[:3]))
    assert (unknown.n, unknown.method) == (4, "none")
    assert evaluation.model_dump(exclude_unset=True) == {
        "n": 200,
        "correct": 110,
        "accuracy": 0.55,
        "interval": [accuracy.low, accuracy.high],
        "ties": 2,
        "interval_method": "wilson",
    }


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

    assert metric.summary() == estimate_count(1, 1)  # the NaN filled up a share, and does not count

    metric.update(a, torch.zeros(2), torch.tensor([True, True]))
    assert metric.summary().n == 3
    assert not metric.summary().known
    assert torch.isnan(metric.compute())
    assert metric.evaluation().model_dump(exclude_unset=True) == {**UNDEFINED, "n": 3, "correct": 2, "undefined": 1}
    assert "1 of 3" in accuracy_text(metric.evaluation())


def test_nan_scores_of_all_batches_are_counted():
    metric = TripleAccuracy(allow_nan=True)
    for _ in range(2):
        metric.update(torch.tensor([0.5, math.nan]), torch.zeros(2), torch.tensor([True, True]))

    assert metric.evaluation().undefined == 2


@pytest.mark.parametrize(("ties", "text"), [(0, ""), (1, ", 1 tie"), (2, ", 2 ties")])
def test_ties_stand_next_to_an_accuracy(ties, text):
    accuracy = estimate_count(2, 4)
    assert accuracy_text(evaluation_of(accuracy, 2, ties)) == f"{accuracy}{text}"


def test_labels_and_counted_rows_must_each_be_bool():
    two, flags, numbers = torch.zeros(2), torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.long)
    for labels, counted in ((numbers, flags), (flags, numbers)):
        with pytest.raises(ValueError, match="must be bool"):
            TripleAccuracy().update(two, two, labels, counted=counted)
