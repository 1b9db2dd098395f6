"""An encoder that the tests of the server share, and settings in a fresh folder."""

import pandas as pd
import pytest

import narrlit
from narrlit.data.tales import sample_tales
from narrlit.serving.encoders import SharedEncoder
from narrlit.serving.settings import ServerSettings

pytest.importorskip("fastapi")


@pytest.fixture(scope="session")
def served_encoder():
    """MiniLM, loaded once; read-only."""
    return SharedEncoder("minilm")


@pytest.fixture(scope="session")
def tales_index(tmp_path_factory, served_encoder):
    """An index of the 24 tales, named tales; read-only."""
    rows = [{**tale, "id": tale["file_name"].removesuffix(".txt")} for tale in sample_tales()]
    frame = pd.DataFrame(rows).drop(columns="file_name")
    index = narrlit.Index.create(tmp_path_factory.mktemp("indexes") / "tales", frame, narrlit.load("minilm"))
    return index.path


@pytest.fixture
def settings(tmp_path):
    return ServerSettings(tmp_path / "data", "minilm")
