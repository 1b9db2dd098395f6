"""Search spaces: what a file may say, what each mistake costs, and what Optuna makes of it."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from narrlit.commands.search_space import Choices, Range, as_options, plain, read_space
from narrlit.errors import OptionError


@pytest.fixture
def read(tmp_path):
    """read(text): the space of that file."""

    def run(text):
        path = tmp_path / "space.yaml"
        path.write_text(text)
        return read_space(path)

    return run


def test_ranges_are_read_and_sorted(read):
    found = read(
        "trainer.max_epochs: {low: 2, high: 8, step: 3}\n"
        "model.init_args.margin: {low: 0.1, high: 1, step: 0.1}\n"
        "model.rate: {low: 1e-5, high: 1.0e-3, log: true}\n"
        "data.size: {choices: [16, 32.5, true, null, linear]}\n"
    )
    assert found == {
        "data.size": Choices((16, 32.5, True, None, "linear")),
        "model.init_args.margin": Range(0.1, 1, 0.1),
        "model.rate": Range(1e-5, 1e-3, log=True),
        "trainer.max_epochs": Range(2, 8, 3),
    }
    assert list(found) == sorted(found)
    assert (found["model.rate"].probes, found["data.size"].probes[1:3]) == ((1e-5, 1e-3), (32.5, True))
    assert yaml.safe_load(yaml.safe_dump(plain(found)))["data.size"] == {"choices": [16, 32.5, True, None, "linear"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no mapping of options to ranges"),
        ("- a\n- b", "no mapping of options to ranges"),
        ("a: {low: 1", "expected"),
        ("a: {low: 1, high: 2}\na: {low: 1, high: 3}", "a stands twice"),
        ("a: {low: 1, low: 2, high: 3}", "low stands twice"),
        ("--a.b: {low: 1, high: 2}", "--a.b is no setting of narrlit fit; names stand without leading dashes"),
        ("3: {low: 1, high: 2}", "3 is no setting"),
        ("config: {choices: [a, b]}", "config is no setting"),
        ("a: 3", "a: low and high, or choices, are needed"),
        ("a: {low: 1}", "a: low and high, or choices, are needed"),
        ("a: {}", "a: low and high, or choices, are needed"),
        ("a: {low: 1, high: 2, base: 3}", "a: there is no base; there are low, high, step, log, choices"),
        ("a: {low: 1, choices: [1, 2]}", "a: choices stand alone, without low"),
        ("a: {choices: []}", "a: choices must be a list of at least two values"),
        ("a: {choices: [1]}", "a: choices must be a list of at least two values"),
        ("a: {choices: abc}", "a: choices must be a list"),
        ("a: {choices: [1, [2]]}", "a: [2] is no choice"),
        ("a: {choices: [1, 2, 1]}", "a: the choice 1 stands twice"),
        ("a: {choices: [1, '1']}", "a: the choice 1 stands twice"),
        ("a: {low: 2, high: 1}", "a: low 2 is not below high 1"),
        ("a: {low: 1, high: 1}", "a: low 1 is not below high 1"),
        ("a: {low: 0, high: 1.0, log: true}", "a: log needs a low above 0, not 0"),
        ("a: {low: 1, high: 2.0, log: 10}", "a: log is 10; write true or false"),
        ("a: {low: low, high: 2}", "a: low is 'low'; a number is needed"),
        ("a: {low: true, high: 2}", "a: low is True; a number is needed"),
        ("a: {low: 1, high: .inf}", "a: high is inf; a number is needed"),
        ("a: {low: 1, high: .nan}", "a: high is nan; a number is needed"),
        ("a: {low: 1, high: 9, step: 2, log: true}", "a: log and step exclude each other"),
        ("a: {low: 1, high: 9, step: 0}", "a: step is 0; a whole number above 0 is needed"),
        ("a: {low: 1, high: 9, step: 0.5}", "a: step is 0.5; a whole number above 0 is needed"),
        ("a: {low: 1.0, high: 9, step: -1}", "a: step is -1; a number above 0 is needed"),
        ("a: {low: 1, high: 9, step: 3}", "a: steps of 3 lead from low 1 past high 9"),
        ("a: {low: 0.1, high: 1.0, step: 0.2}", "a: steps of 0.2 lead from low 0.1 past high 1.0"),
    ],
)
def test_every_mistake_is_one_line_that_names_file_and_option(read, text, words):
    with pytest.raises(OptionError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith("--space ")
    assert "space.yaml: " in message
    assert words in message
    assert "\n" not in message


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(OptionError, match="Is a directory"):
        read_space(tmp_path)
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(OptionError, match="no UTF-8 text"):
        read_space(tmp_path / "b")


def test_distributions_are_optunas():
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    assert Range(2, 8, 3).distribution() == IntDistribution(2, 8, step=3)
    assert Range(2, 8, log=True).distribution() == IntDistribution(2, 8, log=True)
    assert Range(1, 8.0).distribution() == FloatDistribution(1, 8)
    assert Range(1e-5, 1e-3, log=True).distribution() == FloatDistribution(1e-5, 1e-3, log=True)
    assert Range(0.1, 1.0, 0.1).distribution() == FloatDistribution(0.1, 1.0, step=0.1)
    assert Choices((1, "a")).distribution() == CategoricalDistribution((1, "a"))


@given(
    st.one_of(st.floats(1e-12, 1e12), st.integers(-100, 100), st.booleans(), st.none(), st.sampled_from(["a", "b c"]))
)
def test_an_option_is_read_as_the_value_that_it_was_made_of(value):
    from jsonargparse import ArgumentParser

    parser = ArgumentParser()
    parser.add_argument("--x.y", type=bool | int | float | str | None)
    assert parser.parse_args(as_options({"x.y": value})).x.y == value
