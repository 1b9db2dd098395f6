"""The BiLSTM over sentences: against a plain loop, story by story."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from narrlit.errors import OptionError
from narrlit.models.bilstm import BiLSTM, BiLSTMConfig

SMALL = BiLSTMConfig(hidden=5, layers=2, dropout=0.0, output=7)


def built(dimension=6, config=SMALL):
    torch.manual_seed(1)
    return BiLSTM(dimension, config)


def cell(weights, suffix, x, state):
    """One step of an LSTM by its equations: gates in torch's order i, f, g, o."""
    h, c = state
    gates = weights[f"weight_ih_{suffix}"] @ x + weights[f"bias_ih_{suffix}"]
    gates = gates + weights[f"weight_hh_{suffix}"] @ h + weights[f"bias_hh_{suffix}"]
    i, f, g, o = gates.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def by_hand(model, story):
    """A story's vector by the paper's equations, a step at a time."""
    weights = dict(model.lstm.named_parameters())
    hidden = model.config.hidden
    for layer in range(model.config.layers):
        directions = []
        for suffix, steps in ((f"l{layer}", list(story)), (f"l{layer}_reverse", list(story)[::-1])):
            state, seen = (torch.zeros(hidden), torch.zeros(hidden)), []
            for x in steps:
                state = cell(weights, suffix, x, state)
                seen.append(state[0])
            directions.append(seen)
        forward, backward = directions[0], directions[1][::-1]
        story = torch.stack([torch.cat(pair) for pair in zip(forward, backward, strict=True)])
    mapped = model.linear.weight @ torch.cat([forward[-1], backward[0]]) + model.linear.bias
    return mapped / mapped.norm()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 3))
def test_it_equals_a_loop_over_stories_and_steps(lengths, layers):
    model = built(config=BiLSTMConfig(hidden=5, layers=layers, dropout=0.0, output=7))
    vectors = torch.randn(sum(lengths), 6)
    expected = torch.stack([by_hand(model, story) for story in vectors.split(lengths)])
    found = model(vectors, lengths)
    assert torch.allclose(found, expected, atol=1e-6)
    assert torch.allclose(found.norm(dim=1), torch.ones(len(lengths)))


def test_it_equals_torchs_own_lstm_on_each_story_alone():
    model, lengths = built(), [3, 1, 8, 3]
    vectors = torch.randn(15, 6)
    for vector, story in zip(model(vectors, lengths), vectors.split(lengths), strict=True):
        outputs, _ = model.lstm(story)
        ends = torch.cat([outputs[-1, :5], outputs[0, 5:]])
        assert torch.allclose(vector, nn.functional.normalize(model.linear(ends), dim=0), atol=1e-6)


def test_a_story_depends_on_its_sentences_order_and_not_on_the_batch():
    model, lengths = built(), [4, 2, 5]
    vectors = torch.randn(11, 6)
    first, second, third = vectors.split(lengths)
    together = model(vectors, lengths)
    assert torch.allclose(model(second, [2])[0], together[1], atol=1e-6)
    turned = model(torch.cat([third, first, second]), (5, 4, 2))
    assert torch.allclose(turned, together[[2, 0, 1]], atol=1e-6)
    assert (model(first.flip(0), [4])[0] - together[0]).abs().max() > 1e-3


@pytest.mark.parametrize("layers", [1, 2])
def test_every_weight_and_every_sentence_gets_a_gradient(layers):
    model = built(config=BiLSTMConfig(hidden=5, layers=layers, output=7)).double().eval()
    vectors = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    model(vectors, [1, 5])[:, 0].sum().backward()
    for name, parameter in [*model.named_parameters(), ("vectors", vectors)]:
        assert (parameter.grad.abs().amax(-1) > 0).all(), name


def test_gradients_are_right():
    model = built(3, BiLSTMConfig(hidden=2, layers=2, dropout=0.0, output=3)).double()
    vectors = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: model(x, [1, 3, 2]), vectors)


def test_dropout_works_while_training_alone_and_between_layers_alone_if_there_are_two(recwarn):
    vectors = torch.randn(4, 6)
    for layers in (1, 2):
        model = built(config=BiLSTMConfig(hidden=5, layers=layers, dropout=0.5, output=7))
        assert not torch.equal(model(vectors, [4]), model(vectors, [4]))
        assert model.lstm.dropout == (0.5 if layers == 2 else 0)
        model.eval()
        assert torch.equal(model(vectors, [4]), model(vectors, [4]))
    assert not recwarn.list


def test_dropout_stands_in_front_of_the_linear_map_too():
    model = built(config=BiLSTMConfig(hidden=5, layers=1, dropout=0.5, output=7))
    seen = []
    model.linear.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(torch.randn(40, 6), [1] * 40)
    assert 0.3 < (seen[0] == 0).float().mean() < 0.7


@pytest.mark.parametrize(
    ("lengths", "words"), [([], "without"), ([2, 0], "a story without a sentence"), ([3], "2 vectors")]
)
def test_stories_that_do_not_fit_are_refused(lengths, words):
    with pytest.raises(ValueError, match=words):
        built()(torch.randn(2, 6), lengths)


@pytest.mark.parametrize(
    "fields", [{"hidden": 0}, {"layers": 0}, {"output": -1}, {"dropout": 1.0}, {"dropout": float("nan")}]
)
def test_options_out_of_range_are_named(fields):
    with pytest.raises(OptionError, match=rf"bilstm\.{next(iter(fields))} is"):
        BiLSTMConfig(**fields)


def test_the_defaults_are_the_papers():
    model = BiLSTM(384, BiLSTMConfig())
    assert (model.lstm.num_layers, model.lstm.hidden_size, model.dimension) == (2, 128, 256)
    assert model(torch.randn(3, 384), [1, 2]).shape == (2, 256)
