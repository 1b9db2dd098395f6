"""narrlit cache: what ls prints, and that rm removes what is selected and nothing without --yes."""

import json

import pytest
from stored_vectors import make_plain, make_store, shard_of


@pytest.fixture
def caches(tmp_path):
    """Two described caches and a teacher's in the usual place."""
    root = tmp_path / "runs" / "vectors"
    return {
        "large": make_store(root, (0, 5), (5, 8), pooling="last", max_length=512),
        "half": make_store(root, (0, 9), model="org/half", dtype="float16"),
        "teacher": make_plain(root / "rounds" / "vectors", (0, 4)),
    }


def test_ls_prints_a_row_a_cache(narrlit, caches):
    found = narrlit("cache", "ls")
    assert (found.code, found.err) == (0, "")
    header, *rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in found.out.splitlines()]
    assert header[:5] == ["cache", "model", "settings", "embeddings", "dimensions"]
    cells = {row[0]: row[1:-1] for row in rows}  # the last is the time
    size = f"{sum(path.stat().st_size for path in caches['large'].iterdir()) / 1000:.1f} kB"
    assert cells[caches["large"].name] == ["org/name", "pooling=last max_length=512", "8", "6", "float32", "2", size]
    assert cells[caches["half"].name][:6] == ["org/half", "-", "9", "6", "float16", "1"]
    assert cells["rounds/vectors"][:5] == ["unknown", "-", "4", "6", "float32"]


def test_ls_prints_json_and_names_what_is_broken(narrlit, caches):
    broken = shard_of(caches["large"], 5)
    broken.write_bytes(b"")
    found = narrlit("cache", "ls", caches["large"], "--json")
    (one,) = json.loads(found.out)
    assert (one["model"], one["embeddings"], one["shards"], one["dimension"]) == ("org/name", 3, 2, 6)
    assert one["settings"] == {"pooling": "last", "max_length": 512}
    assert [fault.startswith(str(broken)) for fault in one["faults"]] == [True]
    assert broken.name in narrlit("cache", "ls").err


def test_rm_removes_what_is_selected_and_nothing_without_yes(narrlit, caches):
    found = narrlit("cache", "rm", "--model", "org/half")
    assert (found.code, len(found.out.splitlines())) == (0, 1)
    assert "half-" in found.out
    assert "nothing is removed yet: --yes frees" in found.err
    assert all(folder.exists() for folder in caches.values())
    found = narrlit("cache", "rm", "runs", "--model", "org/half", "--yes")
    assert (found.code, "freed" in found.err) == (0, True)
    assert [folder.exists() for folder in caches.values()] == [True, False, True]
    assert "no cached embeddings of this selection" in narrlit("cache", "rm", "--older-than", "1", "--yes").err
    assert narrlit("cache", "rm", caches["large"], "--yes").code == 0
    assert [folder.exists() for folder in caches.values()] == [False, False, True]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ls", "nowhere"], "nowhere is no folder: name one"),
        (["prune"], '"prune" for ACTION'),
        (["ls", "--yes"], "--yes to rm"),
        (["rm", "--json"], "--json belongs to ls"),
    ],
)
def test_mistakes_cost_one_line(narrlit, caches, arguments, words):
    found = narrlit("cache", *arguments)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert words in found.err
