"""Objectives over frozen vectors: losses by hand, gradients of every term, hard examples, controls, options."""

from types import SimpleNamespace

import pytest
import torch
from frozen_batches import batch_of, built, table_of

from narrlit.data.records import Example, Negative
from narrlit.data.table import index_examples
from narrlit.errors import ModelError, OptionError
from narrlit.models.bilstm import BiLSTMConfig
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.objectives import Aspects, Hard, Projection, StoryHead, Subspaces
from narrlit.objectives.frozen import positive_and_negative_cosines


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
    for objective, data, words in (
        (Subspaces(), Data(texts=7), "clusters.theme is 8, but there are only 7"),
        (Subspaces(transductive=True), Data(texts=5, unlabelled=3), "clusters.theme is 8, but there are only 7"),
        (Subspaces(transductive=True), Data(unlabelled=1), "data.extra.unlabelled FILE"),
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
