"""The HITS objective on tiny models: each term against a plain loop, with and without a teacher."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from adapted_encoders import packed
from refusals import refused
from tiny_models import world_texts

from narrlit.data.batch import ExampleBatch, TokenizedStories
from narrlit.data.sampling import ExampleCollator
from narrlit.data.schema import ASPECTS, NEGATIVE_KINDS, StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_examples
from narrlit.embedding_cache.teacher import TeacherEmbeddings
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.objectives import Distillation, SelfDistillation

THEME, OUTCOME, MINED, TRIPLE = (NEGATIVE_KINDS.index(name) for name in ("theme", "outcome", "mined", "triple"))
B, K, STORIES = 4, 3, 14


def batch_of(objective):
    """Four anchors and positives, six negatives: one is padding, one another row's positive, one its own anchor."""
    stories = packed(objective.encoder, world_texts()[:STORIES], indices=torch.arange(STORIES).flip(0) + 3)
    negatives = torch.tensor([[8, 9, -1], [10, 4, 11], [12, 13, 2], [9, 8, 12]])
    kinds = torch.tensor([[THEME, OUTCOME, -1], [MINED, THEME, TRIPLE], [OUTCOME, TRIPLE, -1], [THEME, THEME, OUTCOME]])
    return ExampleBatch(stories, torch.arange(4), torch.arange(4) + 4, negatives, kinds, groups=stories.indices)


@pytest.fixture
def build(tiny):
    def make(teacher=True, **options):
        objective = SelfDistillation(EncoderConfig(tiny("bert"), dropout=0.0), **options)
        objective.configure_model()
        objective.trainer = SimpleNamespace(global_step=0, estimated_stepping_batches=20)
        if teacher:
            table = torch.randn(STORIES + 3, 5, generator=torch.Generator().manual_seed(4))
            objective.teacher = TeacherEmbeddings(table + 1.0)
            objective.round = 1
        return objective

    return make


def softmax(values):
    exponentials = [math.exp(value) for value in values]
    return [exponential / sum(exponentials) for exponential in exponentials]


class ByHand:
    """The terms of the loss, anchor by anchor in plain loops."""

    def __init__(self, objective, vectors, batch):
        self.objective = objective
        self.batch = batch
        self.rows = batch.stories.indices.tolist()
        self.student_vectors = vectors.detach().double().numpy()
        self.teacher_vectors = objective.teacher.table.double().numpy() if objective.teacher else None

    def student(self, i, j):
        return float(self.student_vectors[i] @ self.student_vectors[j])

    def teacher(self, i, j):
        x, y = self.teacher_vectors[self.rows[i]], self.teacher_vectors[self.rows[j]]
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    def candidates(self, i):
        """(story, kind) of each candidate of an example but its positive, without copies of its own two stories."""
        own = (self.rows[self.batch.anchors[i]], self.rows[self.batch.positives[i]])
        found = [(int(positive), "in_batch") for positive in self.batch.positives]
        for negative, kind in zip(self.batch.negatives[i].tolist(), self.batch.kinds[i].tolist(), strict=True):
            if negative >= 0:
                found.append((negative, NEGATIVE_KINDS[kind] if kind >= 0 else "unknown"))
        return [(story, kind) for story, kind in found if self.rows[story] not in own]

    def passes(self, i, candidate):
        if self.teacher_vectors is None or not self.objective.mask:
            return True
        anchor, positive = int(self.batch.anchors[i]), int(self.batch.positives[i])
        return self.teacher(anchor, candidate) <= self.teacher(anchor, positive) - 0.05

    def kept(self, i):
        """The positive and the candidates that the mask leaves."""
        return [int(self.batch.positives[i]), *(story for story, _ in self.candidates(i) if self.passes(i, story))]

    def cross_entropy(self, i):
        logits = [self.student(i, story) / 0.09 for story in self.kept(i)]
        return -math.log(softmax(logits)[0])

    def divergence(self, i):
        factor = 1 / 0.09 if self.objective.distillation.space == "logits" else 1.0
        p = softmax([self.teacher(i, story) * factor / 0.15 for story in self.kept(i)])
        q = softmax([self.student(i, story) * factor / 0.15 for story in self.kept(i)])
        return 0.15**2 * sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))

    def shares(self):
        """Share of the candidates of each kind that the mask leaves."""
        passed = {}
        for i in range(B):
            for story, kind in self.candidates(i):
                passed.setdefault(kind, []).append(self.passes(i, story))
        return {kind: np.mean(values) for kind, values in passed.items()}


def by_hand(objective, vectors, batch):
    """Mean cross-entropy, mean divergence from the teacher (None without one), and shares of kept candidates."""
    loops = ByHand(objective, vectors, batch)
    cross_entropy = np.mean([loops.cross_entropy(i) for i in range(B)])
    divergence = np.mean([loops.divergence(i) for i in range(B)]) if objective.teacher else None
    return cross_entropy, divergence, loops.shares()


@pytest.mark.parametrize("space", ["cosine", "logits"])
@pytest.mark.parametrize("mask", [True, False])
def test_the_terms_match_the_paper(build, mask, space):
    objective = build(mask=mask, distillation=Distillation(space=space), use_triple_negative=True)
    batch = batch_of(objective)
    vectors = objective(batch.stories)
    ce, kl, shares = by_hand(objective, vectors, batch)
    found = objective.loss(vectors, batch)

    assert found["round_1/ce"] == pytest.approx(ce, abs=1e-5)
    assert found["round_1/kl"] == pytest.approx(kl, abs=1e-5)
    assert found["loss"].item() == pytest.approx(ce + 0.7 * kl, abs=1e-5)
    assert {n.removeprefix("round_1/kept_"): v.item() for n, v in found.items() if "kept" in n} == pytest.approx(shares)
    assert (min(shares.values()) < 1) == mask
    assert kl > 0.001


def test_the_first_round_has_neither_mask_nor_teacher(build):
    objective = build(teacher=False, use_triple_negative=True)
    batch = batch_of(objective)
    vectors = objective(batch.stories)
    found = objective.loss(vectors, batch)

    assert set(found) == {"loss", "round_0/ce"}
    assert found["loss"].item() == pytest.approx(by_hand(objective, vectors, batch)[0], abs=1e-5)


@pytest.mark.parametrize(("number", "masked"), [(1, False), (2, True), (3, True)])
def test_the_mask_can_begin_after_the_first_change_of_teacher(build, number, masked):
    """HITS, section 3.3: the mask is "enabled only after the first teacher update"."""
    later = build(first_masked_round=2)
    always = build()
    never = build(mask=False)
    batch = batch_of(later)
    vectors = later(batch.stories)
    for objective in (later, always, never):
        objective.round = number
    found = later.loss(vectors, batch)
    expected = (always if masked else never).loss(vectors, batch)

    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert value.item() == expected[name].item(), name
    assert (found[f"round_{number}/kept_theme"] < 1) == masked
    assert later.hparams["first_masked_round"] == 2


def test_mask_and_kl_can_be_used_separately(build):
    batch = batch_of(build())
    mask_only = build(distill=False)
    kl_only = build(mask=False)
    vectors = mask_only(batch.stories)
    found = mask_only.loss(vectors, batch)

    assert found["loss"].item() == found["round_1/ce"].item()
    assert "round_1/kl" not in found
    assert "round_1/kept_theme" in found

    found = kl_only.loss(vectors, batch)
    assert found["loss"] > found["round_1/ce"]
    assert found["round_1/kept_theme"] == 1


def test_the_weight_decreases_within_each_round(build):
    objective = build()
    objective.rounds = 2  # of ten steps
    batch = batch_of(objective)
    embeddings = objective(batch.stories)
    for step, weight in ((10, 0.7), (19, 0.05), (13, 0.7 - 0.65 * 3 / 9)):
        objective.trainer.global_step = step
        assert objective.loss(embeddings, batch)["round_1/kl_weight"].item() == pytest.approx(weight)


def test_the_dissimilar_story_of_a_triple_is_not_embedded(build):
    objective = build(teacher=False)
    batch = batch_of(objective)
    smaller = objective.on_before_batch_transfer(batch, 0)

    assert len(smaller.stories) == STORIES - 2  # stories 11 and 13 serve as nothing else
    assert (smaller.negatives >= 0).sum() == (batch.negatives >= 0).sum() - 2

    kept = build(teacher=False, use_triple_negative=True)
    assert kept.on_before_batch_transfer(batch, 0) is batch

    a = objective.loss(objective(smaller.stories), smaller)["loss"]
    b = kept.loss(kept(batch.stories), batch)["loss"]
    assert a < b - 1e-3


def test_every_trained_weight_gets_a_gradient_from_each_term(tiny, build):
    for options in ({"distill": False}, {}):
        encoder = EncoderConfig(tiny("qwen3", "lasttoken"), lora=LoRA(rank=2, dropout=0.0))
        objective = SelfDistillation(encoder, **options)
        objective.configure_model()
        objective.trainer = SimpleNamespace(global_step=0, estimated_stepping_batches=20)
        other = build()
        objective.teacher, objective.round = other.teacher, 1
        batch = batch_of(objective)
        found = objective.loss(objective(batch.stories), batch)
        found["loss"].backward()
        trained = {n: p for n, p in objective.named_parameters() if p.requires_grad}
        assert all("lora_" in n for n in trained)
        assert len(trained) == 3 * 7 * 2
        assert all(p.grad.any() for n, p in trained.items() if "lora_B" in n)


def test_the_teacher_is_not_part_of_the_module(build):
    objective = build()
    assert not any("teacher" in name for name in objective.state_dict())
    assert not any("teacher" in name for name, _ in objective.named_modules())
    assert "teacher" not in objective.hparams


def test_data_without_negatives_are_refused(build):
    objective = build()
    cases = [(TRIPLE, False, True), (None, True, True), (TRIPLE, True, False), (MINED, False, False)]
    for kind, use, is_refused in cases:
        objective.use_triple_negative = use
        negatives = np.array([[-1 if kind is None else 3]])
        examples = SimpleNamespace(negatives=negatives, kinds=np.array([[-1 if kind is None else kind]]))
        objective.trainer.datamodule = SimpleNamespace(examples=examples)
        if is_refused:
            with refused("no_negatives_to_distill"):
                objective.on_fit_start()
        else:
            objective.on_fit_start()


def test_a_perfect_teacher_masks_exactly_the_false_negatives(build):
    """Stories of one structure have one vector: the planted negatives are as near as the positive, no other is."""
    world = StoryWorld(2)
    triples = world.triples(16)
    others = [world.one_aspect_negatives(t.anchor, 2, 0.3) for t in triples]
    stories = StoryTable()
    examples = synthetic_examples(triples, others, stories)
    structures = {}
    for triple, negatives in zip(triples, others, strict=True):
        for story in (triple.anchor, triple.positive, triple.negative, *(story for _, story in negatives)):
            structures[story.text] = story.structure
    numbers = {structure: number for number, structure in enumerate(set(structures.values()))}
    one_hot = torch.eye(len(numbers))
    objective = build(teacher=False)
    objective.teacher = TeacherEmbeddings(one_hot[[numbers[structures[text]] for text in stories.texts]])
    inputs = TokenizedStories(stories, objective.encoder.tokenize, symmetric=True)
    batch = objective.on_before_batch_transfer(ExampleCollator(examples, inputs)(list(range(16))), 0)
    objective.loss(objective(batch.stories), batch)

    for kind in ASPECTS:
        is_true = []
        for triple, negatives in zip(triples, others, strict=True):
            own = [story for name, story in negatives if name == kind]
            is_true += [story.structure != triple.anchor.structure for story in own]
        assert objective.kept[kind] == (sum(is_true), len(is_true))
        assert 0 < sum(is_true) < len(is_true)

    assert "triple" not in objective.kept
