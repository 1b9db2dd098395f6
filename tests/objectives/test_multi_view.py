"""ttda704's views: the loss by hand, gradients of both variants, batches of anchors, what is refused."""

import pytest
import torch
from refusals import refused
from tiny_models import world_texts
from torch.nn.functional import normalize

from narrlit.data.batch import PackedStories, TokenizedStories
from narrlit.data.sampling import ExampleCollator
from narrlit.data.schema import ASPECTS, Story, StoryTable, TrainingExample, TrainingExamples, Views
from narrlit.models.config import EncoderConfig, Fusion, Prompts
from narrlit.objectives import MultipleNegativesRanking, MultiView

WEIGHTS = Fusion(0.4, 0.3, 0.1, 0.2)


def parts(count):
    """(text, theme, action, outcome) of different stories; the first two share their theme."""
    texts = [f"{i} {text[40:100]}" for i, text in enumerate(world_texts(16)[: 4 * count])]  # short: nothing is cut
    stories = []
    for i in range(count):
        theme, action, outcome = texts[count + 3 * i : count + 3 * i + 3]
        stories.append((texts[i], stories[0][1] if i == 1 else theme, action, outcome))
    return stories


@pytest.fixture
def build(tiny):
    def make(kind=MultiView, prompts=None, **options):
        torch.manual_seed(1)
        objective = kind(EncoderConfig(tiny(), prompts=prompts or Prompts()), fusion=WEIGHTS, hidden=16, **options)
        objective.configure_model()
        return objective.eval()

    return make


def batch_of(objective, count=4, chosen=None):
    """Anchors alone of `count` examples, as the data's loader makes them; the candidates are the last two stories."""
    stories = StoryTable()
    for text, *views in parts(count + 2):
        stories.add(text, views=Views(*views))
    rows = [TrainingExample(i, count, (count + 1,), (None,)) for i in range(count)]
    inputs = objective.story_inputs(stories, "fit")
    return objective.collator(TrainingExamples(stories, rows), inputs)(list(range(count)) if chosen is None else chosen)


def cosine(x, y):
    return (x @ y) / (x.norm() * y.norm())


def loss_by_hand(objective, stories, heads, alignment_terms="mean"):
    """The paper's formulas, story by story, on the encoder's own vectors of one text at a time."""

    def encoded(text):
        return torch.tensor(objective.encoder.model.encode(text, prompt=""))

    def by_head(view, vector):
        return objective.views.heads.heads[view](vector) if heads else vector

    own = []
    for story in stories:
        own.append([encoded(part) for part in story])

    terms = {}
    for place, view in enumerate(ASPECTS, 1):
        total = 0.0
        for i, story in enumerate(own):
            a = by_head(view, story[0])
            p = by_head(view, story[place])
            n = by_head(view, own[(i + 1) % len(own)][place])
            near = (cosine(a, p) / 0.07).exp()
            far = (cosine(a, n) / 0.07).exp()
            total += -(near / (near + far)).log() / len(own)
        terms[view] = total
    aligned = 0.0
    for story in own:
        views = [normalize(by_head(view, story[place]), dim=0) for place, view in enumerate(ASPECTS, 1)]
        weights = WEIGHTS.weights
        fused = weights[0] * story[0]
        for weight, view in zip(weights[1:], views, strict=True):
            fused = fused + weight * view
        targets = [torch.stack(views).mean(0)] if alignment_terms == "mean" else views
        for target in targets:
            aligned += (fused / fused.norm() - target / target.norm()).square().sum() / len(own)
    terms["alignment"] = aligned if heads else torch.tensor(0.0)
    terms["loss"] = sum(terms[view] for view in ASPECTS) + 0.5 * terms["alignment"]
    return terms


@pytest.mark.parametrize("alignment_terms", ["mean", "views"])
@pytest.mark.parametrize("variant", ["as_written", "as_published"])
def test_the_loss_matches_its_formulas(build, variant, alignment_terms):
    objective = build(variant=variant, alignment_terms=alignment_terms)
    batch = batch_of(objective)
    found = objective.loss(objective.training_embeddings(batch.stories), batch)
    with torch.no_grad():
        expected = loss_by_hand(objective, parts(6)[:4], variant == "as_written", alignment_terms)

    assert set(found) == {"loss", "theme", "action", "outcome", "alignment"}
    for name, value in expected.items():
        assert found[name].item() == pytest.approx(float(value), abs=2e-5), name

    if variant == "as_written":
        assert found["alignment"] > 0.01


def test_three_alignment_terms_differ_from_one_and_give_every_head_a_gradient(build):
    # at this temperature contrasts do not pull
    one = build()
    three = build(alignment_terms="views", temperature=1e9)
    batch = batch_of(one)
    losses = [each.loss(each.training_embeddings(batch.stories), batch)["alignment"] for each in (one, three)]

    assert losses[1] > 2 * losses[0] > 0  # the views are further from the fused embedding than their mean is

    found = gradients(three, batch)
    heads = [parameter for name, parameter in three.named_parameters() if name.startswith("views.heads.")]
    assert len(heads) == 12
    assert all(parameter.grad.abs().sum() > 1e-4 for parameter in heads)
    assert any(name.startswith("encoder.") for name in found)


def gradients(objective, batch):
    objective.loss(objective.training_embeddings(batch.stories), batch)["loss"].backward()
    return {name: p.grad for name, p in objective.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}


def test_as_written_every_head_and_the_encoder_get_a_gradient(build):
    objective = build()
    found = gradients(objective, batch_of(objective))
    heads = [name for name, _ in objective.named_parameters() if name.startswith("views.heads.")]

    assert len(heads) == 12
    assert set(heads) <= set(found)

    untrained = {name for name, p in objective.named_parameters() if p.requires_grad} - set(found)
    assert not {name for name in untrained if "key.bias" not in name}  # a softmax takes no notice of its keys' bias


def test_as_published_has_no_heads_and_an_alignment_of_0(build):
    objective = build(variant="as_published")
    assert objective.views.heads is None

    batch = batch_of(objective)
    assert [name for name in gradients(objective, batch) if name.startswith("encoder.")]

    terms = objective.loss(objective.training_embeddings(batch.stories), batch)
    assert terms["alignment"].item() == 0

    # Its weight changes nothing, since what is aligned is one vector with itself.
    objective.alignment = 100.0
    assert objective.loss(objective.training_embeddings(batch.stories), batch)["loss"].item() == terms["loss"].item()


def test_a_batch_is_one_pass_over_its_distinct_texts_and_views(build, monkeypatch):
    objective = build()
    batch = batch_of(objective)
    passes = []
    encode = objective.encoder.forward
    monkeypatch.setattr(objective.encoder, "forward", lambda stories: passes.append(len(stories)) or encode(stories))
    objective.training_embeddings(batch.stories)

    assert passes == [len({part for story in parts(6)[:4] for part in story})] == [15]  # two share their theme


def test_batches_contain_only_anchors_each_with_the_next_one(build):
    objective = build()
    batch = batch_of(objective, chosen=[2, 0, 3])
    assert len(batch.stories) == 3
    assert batch.stories.indices[batch.anchors].tolist() == [2, 0, 3]
    assert batch.stories.indices[batch.others].tolist() == [0, 3, 2]

    alone = batch_of(objective, chosen=[2])
    assert alone.stories.indices[alone.anchors] != alone.stories.indices[alone.others]


def test_selecting_stories_removes_the_texts_of_others(build):
    objective = build()
    stories = batch_of(objective).stories
    few = stories.select([3, 1])

    assert len(few) == 2
    assert few.indices.tolist() == stories.indices[[3, 1]].tolist()
    assert len(few.pieces) == 8
    assert torch.allclose(objective(few), objective(stories)[[3, 1]], atol=1e-6)


@pytest.mark.parametrize("variant", ["as_written", "as_published"])
def test_evaluation_fuses_the_embeddings_that_are_trained(build, variant):
    objective = build(variant=variant)
    batch = batch_of(objective)
    vectors = objective(batch.stories)
    own = normalize(objective.training_embeddings(batch.stories), dim=-1)
    views = own[:, 1:] if variant == "as_published" else objective.views.heads(own[:, 1:])
    weights = torch.tensor(WEIGHTS.weights)
    total = torch.einsum("upd,p->ud", torch.cat([own[:, :1], views], dim=1), weights)

    assert torch.allclose(vectors, normalize(total, dim=-1), atol=1e-6)
    assert objective.hparams["views"]["hidden"] == (16 if variant == "as_written" else None)


def test_a_story_without_views_is_refused_only_if_it_is_needed(build):
    objective = build()
    text, *views = parts(2)[0]
    stories = [Story("0", text, Views(*views)), Story("1", "A candidate alone.")]
    inputs = objective.story_inputs(stories, "fit")

    assert len(inputs.select(torch.tensor([0]).numpy())) == 1
    with refused("batch_without_views"):
        inputs.select(torch.tensor([0, 1]).numpy())


def test_role_prompts_are_refused(build):
    with refused("prompts_by_role", purpose="the fusion of a story's views"):
        build(prompts=Prompts(anchor="a: ", candidate="b: "))


def test_other_objectives_refuse_batches_of_views(build, tiny):
    ranking = MultipleNegativesRanking(EncoderConfig(tiny()))
    ranking.configure_model()
    stories = StoryTable.of(world_texts()[:2])
    inputs = ranking.story_inputs(stories, "fit")

    assert isinstance(inputs, TokenizedStories)

    collator = ranking.collator(TrainingExamples(stories, [TrainingExample(0, 1)]), inputs)
    assert isinstance(collator, ExampleCollator)
    with pytest.raises(TypeError, match="stories with views"):
        build().training_embeddings(PackedStories(torch.tensor([1]), (1,), torch.tensor([0])))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_an_encoder_in_half_precision_trains_heads_in_float32(tiny, dtype):
    objective = MultiView(EncoderConfig(tiny(), dtype=dtype), fusion=WEIGHTS, hidden=16)
    objective.configure_model()
    batch = batch_of(objective.eval())
    found = gradients(objective, batch)

    assert {found[name].dtype for name in found if name.startswith("views.heads.")} == {torch.float32}
    assert objective(batch.stories).dtype == torch.float32


def test_autocast_does_not_round_heads_and_fusion(build):
    objective = build()
    batch = batch_of(objective)
    vectors = objective.training_embeddings(batch.stories)
    plain = objective.loss(vectors, batch)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = objective.loss(vectors, batch)
        fused = objective.views.fuse(objective.views.parts(vectors))

    for name, value in plain.items():
        assert mixed[name].item() == pytest.approx(value.item(), abs=1e-6), name
    assert torch.allclose(fused, objective.views.fuse(objective.views.parts(vectors)), atol=1e-6)
    assert torch.allclose(fused.norm(dim=-1), torch.ones(len(fused)), atol=1e-6)


def test_a_checkpoint_with_other_heads_is_refused(build):
    objective = build()
    other = build(variant="as_published")
    checkpoint = {"hyper_parameters": dict(other.hparams), "state_dict": other.state_dict()}

    with refused("weights_of_other_run") as caught:
        objective.on_load_checkpoint(checkpoint)
    assert caught.value.values["name"].startswith("views.heads")

    objective.on_load_checkpoint({"hyper_parameters": dict(objective.hparams), "state_dict": objective.state_dict()})
