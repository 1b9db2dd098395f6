"""Parsing of seeds on the command line."""

import pytest
from refusals import refused

from narrlit.commands.seeds import read_seeds


@pytest.mark.parametrize("text", ["1", "1,1", "1,x", "1,-2", ""])
def test_seeds_are_different_whole_numbers(text):
    with refused("invalid_seeds"):
        read_seeds(text)


def test_without_seeds_there_are_none():
    assert read_seeds(None) is None
    assert read_seeds("3, 4") == [3, 4]
