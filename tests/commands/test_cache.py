"""narrlit cache: what ls prints, and that rm removes what is selected and nothing without --yes."""

import json
from pathlib import Path

import pytest
import torch

from narrlit.embedding_cache.space import EmbeddingSpace, content_keys
from narrlit.embedding_cache.storage import EmbeddingCache, open_cache


@pytest.fixture
def caches(tmp_path):
    """Two caches of models and a teacher's in the usual place."""
    root = tmp_path / "runs/embeddings"
    caches = {
        name: open_cache(root, EmbeddingSpace({"model": name, "stored": "float32"}))
        for name in ("org/large", "org/half")
    }
    caches["teacher"] = EmbeddingCache(root / "teachers/round_1/embeddings")
    for count, cache in enumerate(caches.values(), 5):
        cache.add(content_keys({}, [str(i) for i in range(count)]), torch.ones(count, 6))
    return {name: cache.folder for name, cache in caches.items()}


def test_ls_prints_a_line_or_an_object_per_cache(narrlit, caches, tmp_path):
    found = narrlit("cache", "ls")
    assert found.code == 0
    assert found.err == ""
    assert len(found.out.splitlines()) == 3

    folder = caches["org/large"]
    size = sum(path.stat().st_size for path in folder.iterdir())
    line = f"{folder.relative_to(tmp_path)}: org/large, 5 embeddings, 6 dimensions, float32, {size} B"

    assert line in found.out.splitlines()

    (one,) = json.loads(narrlit("cache", "ls", folder, "--json").out)
    about = {"folder": str(folder), "model": "org/large", "embeddings": 5, "dimension": 6, "dtype": "float32"}
    assert one == about | {"bytes": size}


def test_rm_removes_what_is_selected_and_nothing_without_yes(narrlit, caches):
    found = narrlit("cache", "rm", "--model", "org/half")
    assert found.code == 0
    assert len(found.out.splitlines()) == 1
    assert "dry run, nothing was removed; add --yes to free" in found.err
    assert all(folder.exists() for folder in caches.values())

    found = narrlit("cache", "rm", "runs", "--model", "org/half", "--yes")
    assert found.code == 0
    assert "freed" in found.err
    assert [folder.exists() for folder in caches.values()] == [True, False, True]
    assert "no cached embeddings" in narrlit("cache", "rm", "--model", "org/half", "--yes").out
    assert narrlit("cache", "rm", "--yes").code == 0
    assert not any(folder.exists() for folder in caches.values())


def test_a_damaged_shard_costs_one_line_and_no_answer(narrlit, world_files, tiny):
    """A byte of the embeddings that compare caches changes; later a shard is cut. The answers stay the same."""
    compare = ("compare", world_files / "validation.jsonl", "--models", tiny(), "--baselines", "longer", "--out")
    assert narrlit(*compare, "one").code == 0

    answers = Path("one/answers.csv").read_bytes()
    for number, damage in enumerate((lambda whole: whole[:900] + b"\x7f" + whole[901:], lambda whole: whole[:900])):
        path = next(Path("runs/embeddings").rglob("*.safetensors"))
        path.write_bytes(damage(path.read_bytes()))
        found = narrlit(*compare, f"again-{number}")
        lines = [line for line in found.err.splitlines() if "damaged" in line]
        assert found.code == 0, found.err
        assert len(lines) == 1, found.err
        assert f"{path} is damaged" in lines[0]
        assert Path(f"again-{number}/answers.csv").read_bytes() == answers
        assert "damaged" not in narrlit(*compare, f"last-{number}").err
