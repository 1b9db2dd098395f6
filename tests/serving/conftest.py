"""An encoder that the tests of the server share, and settings in a fresh folder."""

import pytest

import narrlit
from narrlit.serving.settings import ServerSettings

pytest.importorskip("fastapi")


@pytest.fixture(scope="session")
def served_encoder():
    """MiniLM, loaded once; read-only."""
    return narrlit.load("minilm")


@pytest.fixture
def settings(tmp_path):
    return ServerSettings(tmp_path / "data", "minilm")
