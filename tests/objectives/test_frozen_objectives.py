"""Objectives over frozen vectors: losses by hand, gradients of every term, hard examples, controls, options."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from narrlit.data.batch import ExampleBatch, PackedVectors
from narrlit.data.records import Example, Negative
from narrlit.data.table import index_examples
from narrlit.errors import ModelError, OptionError
from narrlit.models.bilstm import BiLSTMConfig
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.objectives import Aspects, Hard, Projection, StoryHead, Subspaces
from narrlit.objectives.frozen import positive_and_negative_cosines
from narrlit.objectives.unlabelled import UnlabelledStories
from narrlit.stores.features import FeatureTable
from narrlit.stores.mapped import MappedVectors

D = 12


def packed(lengths, first_row=50, seed=0):
    vectors = torch.randn(sum(lengths), D, generator=torch.Generator().manual_seed(seed))
    return PackedVectors(vectors, tuple(lengths), torch.arange(len(lengths)) + first_row)


def batch_of(lengths=(1,) * 9):
    """Four examples over nine stories: anchors 0 to 3, positives 4 to 7, negative 8 of all but the last."""
    negatives = torch.tensor([[8], [8], [8], [-1]])
    return ExampleBatch(packed(lengths), torch.arange(4), torch.arange(4) + 4, negatives, torch.full((4, 1), -1))


def built(objective):
    torch.manual_seed(0)
    objective.dimension = D
    objective.configure_model()
    return objective


def table_of(count, seed=0, lengths=None):
    lengths = np.ones(count, dtype=np.int64) if lengths is None else np.array(lengths)
    vectors = torch.randn(int(lengths.sum()), D, generator=torch.Generator().manual_seed(seed))
    places = np.arange(len(vectors))
    return FeatureTable(MappedVectors([vectors], np.zeros_like(places), places), places, lengths, count), vectors


class Steps:
    """As much of a trainer as counts its batches."""

    total_batch_idx = 3

    @property
    def fit_loop(self):
        return self

    epoch_loop = fit_loop


@pytest.mark.parametrize("kind", [Projection, StoryHead])
def test_the_loss_is_a_triplet_loss_of_cosines(kind):
    objective = built(kind(margin=0.4))
    batch = batch_of()
    v = objective(batch.stories)
    assert torch.allclose(v.norm(dim=1), torch.ones(9), atol=1e-6)
    terms = [torch.relu(0.4 - (v[i] @ v[i + 4] - v[i] @ v[8])) for i in range(3)]
    assert torch.allclose(objective.loss(v, batch)["loss"], torch.stack(terms).mean(), atol=1e-6)


def test_the_papers_margins_are_the_defaults():
    assert (Projection().margin, StoryHead().margin, Subspaces().margin) == (0.2, 1.0, 1.002)
    found = Subspaces()
    assert (found.triplet_weight, found.aspects.weight, found.aspects.unlabelled_weight) == (1.437, 0.974, 0.355)
    assert (found.aspects.margin, found.aspects.weights, found.sizes) == (0.537, (0.5, 0.3, 0.2), (128, 64, 64))


@pytest.mark.parametrize("kind", [Projection, StoryHead, Subspaces])
def test_steps_of_training_lower_the_loss_and_move_every_weight(kind):
    objective = built(kind())
    batch = batch_of((1,) * 9 if kind is not Subspaces else (2, 3, 1, 4, 2, 2, 3, 1, 5))
    before = {name: p.detach().clone() for name, p in objective.named_parameters()}
    optimizer = torch.optim.Adam(objective.parameters(), lr=3e-3)
    losses = []
    for step in range(15):
        torch.manual_seed(step)
        loss = objective.loss(objective(batch.stories), batch)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.05
    assert [n for n, p in objective.named_parameters() if torch.equal(p, before[n])] == []


def test_only_the_head_has_weights():
    names = {name.split(".")[0] for name, _ in built(Projection()).named_parameters()}
    assert names == {"head"}


def test_cosines_of_all_examples_whatever_the_block(monkeypatch):
    monkeypatch.setattr("narrlit.objectives.frozen.EXAMPLES_A_BLOCK", 2)
    examples = [
        Example("a", "b", (Negative("c"), Negative("d"))),
        Example("b", "a", (Negative("e"),)),
        Example("c", "d"),
    ]
    indexed = index_examples(examples)
    table, vectors = table_of(len(indexed.table))
    unit = torch.nn.functional.normalize(vectors, dim=1)
    row = {text: indexed.table.add(text) for text in "abcde"}
    near, far = positive_and_negative_cosines(table, indexed)
    expected = [unit[row[x]] @ unit[row[y]] for x, y in ("ab", "ba", "cd")]
    assert torch.allclose(near, torch.stack(expected), atol=1e-6)
    hardest = max(unit[row["a"]] @ unit[row["c"]], unit[row["a"]] @ unit[row["d"]])
    assert torch.allclose(far[:2], torch.stack([hardest, unit[row["b"]] @ unit[row["e"]]]), atol=1e-6)
    assert far[2] == -torch.inf


def labelled(objective, count=9):
    """Labels of the stories in rows 50 and up, such that each aspect has pairs among the anchors."""
    labels = torch.full((50 + count, 3), -1)
    labels[50:54] = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]])
    objective.labels = labels
    return objective


@pytest.mark.parametrize("aspect", range(3))
def test_each_slice_alone_has_a_gradient_into_the_whole_bilstm(aspect):
    weights = [0.0, 0.0, 0.0]
    weights[aspect] = 1.0
    aspects = Aspects(weights=tuple(weights), margin=3.0)
    objective = labelled(built(Subspaces(aspects=aspects, triplet_weight=0.0, bilstm=BiLSTMConfig(dropout=0))))
    batch = batch_of((2, 3, 1, 4, 2, 2, 3, 1, 5))
    objective.loss(objective(batch.stories), batch)["loss"].backward()
    begin = sum(objective.sizes[:aspect])
    pull = objective.head.linear.weight.grad.abs().sum(1)
    rows = (pull > 1e-5 * pull.max()).nonzero().squeeze(1)
    assert rows.min() >= begin
    assert rows.max() < begin + objective.sizes[aspect]
    assert [n for n, p in objective.head.lstm.named_parameters() if not p.grad.any()] == []


def by_hand(v, labels, margin):
    """Batch-hard in plain loops: mean over rows with a pair, and how many labelled rows have none."""
    costs, without = [], 0
    for i in range(len(v)):
        if labels[i] < 0:
            continue
        far = [(v[i] - v[j]).norm() for j in range(len(v)) if j != i and labels[j] == labels[i]]
        near = [(v[i] - v[j]).norm() for j in range(len(v)) if labels[j] >= 0 and labels[j] != labels[i]]
        if far and near:
            costs.append(torch.relu(max(far) - min(near) + margin))
        else:
            without += 1
    return torch.stack(costs).mean() if costs else v.sum() * 0, without


def test_the_whole_loss_is_the_papers_weighted_sum():
    objective = labelled(built(Subspaces(bilstm=BiLSTMConfig(output=16, dropout=0))))
    objective.labels[50, 0] = 7  # alone with its theme, as 51 is now
    batch = batch_of((2, 3, 1, 4, 2, 2, 3, 1, 5))
    v = objective(batch.stories)
    found = objective.loss(v, batch)
    triplet = torch.stack([torch.relu(1.002 - (v[i] @ v[i + 4] - v[i] @ v[8])) for i in range(3)]).mean()
    total = 1.437 * triplet
    for k, (begin, end, weight) in enumerate([(0, 8, 0.5), (8, 12, 0.3), (12, 16, 0.2)]):
        part = torch.nn.functional.normalize(v[:4, begin:end], dim=1)
        loss, without = by_hand(part, objective.labels[50:54, k].tolist(), 0.537)
        total = total + 0.974 * weight * loss
        name = ("theme", "action", "outcome")[k]
        assert torch.allclose(found[name], loss, atol=1e-6)
        assert found[f"{name}_without_pair"] == without == (2 if k == 0 else 0)
    assert torch.allclose(found["loss"], total, atol=1e-6)


def test_all_stories_of_a_batch_may_count():
    objective = labelled(built(Subspaces(aspects=Aspects(labelled="all"), bilstm=BiLSTMConfig(output=16, dropout=0))))
    objective.labels[54:59] = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [2, 2, 2]])
    batch = batch_of((2, 3, 1, 4, 2, 2, 3, 1, 5))
    v = objective(batch.stories)
    found = objective.loss(v, batch)
    # The negative stands three times, which makes no pair of it; each time it is without one.
    part = torch.nn.functional.normalize(v[:, :8], dim=1)
    rows = [*range(8)]
    loss, _ = by_hand(part[[*rows, 8]], objective.labels[50:59, 0].tolist(), 0.537)
    assert torch.allclose(found["theme"], loss, atol=1e-6)
    assert found["theme_without_pair"] == 3


def test_unlabelled_stories_add_their_slices_and_nothing_else():
    objective = labelled(built(Subspaces(transductive=True, bilstm=BiLSTMConfig(output=16, dropout=0))))
    objective._trainer = Steps()
    batch = batch_of((2, 3, 1, 4, 2, 2, 3, 1, 5))
    plain = objective.loss(objective(batch.stories), batch)
    table, _ = table_of(6, lengths=[1, 2, 3, 1, 2, 1])
    labels = torch.tensor([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    objective.unlabelled = UnlabelledStories(table, labels)
    found = objective.loss(objective(batch.stories), batch)
    more = sum(
        w * found[f"unlabelled_{n}"] for n, w in zip(("theme", "action", "outcome"), (0.5, 0.3, 0.2), strict=True)
    )
    assert more > 0.01
    assert torch.allclose(found["loss"], plain["loss"] + 0.355 * more, atol=1e-6)


def test_the_same_step_draws_the_same_unlabelled_stories():
    table, _ = table_of(20)
    stories = UnlabelledStories(table, torch.arange(60).view(20, 3))
    one, again, other = (stories.draw(8, [1, step, 0], torch.device("cpu")) for step in (4, 4, 5))
    assert torch.equal(one.stories.rows, again.stories.rows)
    assert not torch.equal(one.stories.rows, other.stories.rows)
    assert torch.equal(one.labels[:, 0], one.stories.rows * 3)
    assert len(set(one.stories.rows.tolist())) == 8
    assert len(stories.draw(99, [0], torch.device("cpu")).labels) == 20


def test_marks_say_what_was_done():
    assert Projection().marks() == {"transductive": False, "mined_validation": False}
    assert Projection(hard=Hard(mine_validation=True)).marks()["mined_validation"]
    assert Subspaces(transductive=True).marks()["transductive"]


def test_constructors_build_nothing_and_keep_plain_hyperparameters():
    for objective in (Projection(), StoryHead(hidden=[3]), Subspaces(transductive=True)):
        assert not list(objective.parameters())
        kept = dict(objective.hparams)
        del kept["objective"], kept["head"]
        again = type(objective)(**kept)
        assert {**again.hparams, "head": 0} == {**objective.hparams, "head": 0}
        assert again.vectors == objective.vectors


def checkpoint_of(objective, space):
    objective._frozen = SimpleNamespace(space=space)
    checkpoint = {"state_dict": {}, "hyper_parameters": dict(objective.hparams)}
    objective.on_save_checkpoint(checkpoint)
    return checkpoint


SPACE = {"model": "m", "max_length": 96, "stored": "float32", "prompts": {"anchor": ""}}


def test_a_checkpoint_goes_on_with_its_own_head_and_vectors():
    kept = checkpoint_of(built(Projection()), SPACE)
    same = built(Projection(margin=0.5))
    same._frozen = SimpleNamespace(space={**SPACE, "stored": "float16"})
    same.on_load_checkpoint(kept)
    layers = built(StoryHead())
    layers._frozen = SimpleNamespace(space=SPACE)
    with pytest.raises(ModelError, match="of another head: kind is 'projection' there, 'layers' here"):
        layers.on_load_checkpoint(kept)
    for other, named in (({"max_length": 256}, "max_length is 96"), ({"prompts": {"anchor": "q"}}, "prompts is")):
        same._frozen = SimpleNamespace(space={**SPACE, **other})
        with pytest.raises(ModelError, match=f"of another encoder: {named}"):
            same.on_load_checkpoint(kept)
    wide = built(Subspaces())
    narrow = built(Subspaces(bilstm=BiLSTMConfig(hidden=64)))
    narrow._frozen = SimpleNamespace(space=SPACE)
    with pytest.raises(ModelError, match="hidden is 128 there, 64 here"):
        narrow.on_load_checkpoint(checkpoint_of(wide, SPACE))


class Data:
    """As much of a datamodule as is checked before the first vector is made."""

    unlabelled_given = False

    def __init__(self, texts=40, unlabelled=0, validation=0):
        self.texts = [f"story {i}" for i in range(texts)]
        self.unlabelled = [f"story {i}" for i in range(texts - 1, texts - 1 + unlabelled)]
        self.triples = {"validation": [0] * validation}

    def training_texts(self):
        return self.texts

    def unlabelled_texts(self):
        return self.unlabelled

    def story_truths(self, texts):
        return [None] * len(texts)


def test_data_that_a_fit_cannot_use_are_refused_before_a_vector_is_made():
    Subspaces().check(Data())
    Subspaces(transductive=True).check(Data(texts=6, unlabelled=3))
    Projection(hard=Hard(mine_validation=True)).check(Data(validation=2))
    given = Data()
    given.unlabelled_given = True
    for objective, data, words in (
        (Subspaces(), Data(texts=7), "clusters.theme is 8, but there are only 7"),
        (Subspaces(transductive=True), Data(texts=5, unlabelled=3), "clusters.theme is 8, but there are only 7"),
        (Subspaces(transductive=True), Data(unlabelled=1), "data.extra.unlabelled FILE"),
        (Subspaces(), given, "nothing reads it"),
        (Subspaces(aspects=Aspects(labels="truth")), Data(), "aspects.labels is truth"),
        (Projection(hard=Hard(mine_validation=True)), Data(), "--data.validation FILE"),
    ):
        with pytest.raises(OptionError, match=words):
            objective.check(data)


def test_a_head_computes_in_full_precision_under_autocast():
    objective, batch = built(Projection(noise=0.05)), batch_of()
    plain = objective(batch.stories)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(objective(batch.stories), plain)


def test_options_out_of_range_are_refused():
    for make, word in (
        (lambda: Projection(margin=-1), "margin"),
        (lambda: Projection(noise=-0.1), "noise"),
        (lambda: Projection(EncoderConfig(lora=LoRA())), "lora"),
        (lambda: StoryHead(EncoderConfig(frozen_layers=0.5)), "frozen_layers"),
        (lambda: Projection(EncoderConfig(dropout=0.1)), "dropout"),
        (lambda: Projection(margin=float("nan")), "margin"),
        (lambda: Subspaces(bilstm=BiLSTMConfig(output=2)), "bilstm.output"),
        (lambda: Aspects(weights=(1, float("nan"), 1)), "weights"),
        (lambda: Hard(share=2), "share"),
        (lambda: Hard(weight=0), "weight"),
        (lambda: StoryHead(hidden=[0]), "hidden"),
        (lambda: StoryHead(margin=-1), "margin"),
        (lambda: Aspects(ratios=(1, 0, 1)), "ratios"),
        (lambda: Aspects(weight=-1), "weight"),
        (lambda: Subspaces(margin=-1), "margin"),
        (lambda: Subspaces(transductive=True, aspects=Aspects(labels="truth")), "transductive"),
    ):
        with pytest.raises(OptionError, match=word):
            make()
