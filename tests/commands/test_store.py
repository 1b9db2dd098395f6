"""narrlit store: what it prints, what it refuses, and that nothing goes without --yes."""

import json

import pytest
from stored_vectors import add_spans, assert_whole, flip, leftover, make_plain, make_store, shard_of, without_checksum

from narrlit.stores.shards import shard_paths
from narrlit.stores.vectors import VectorStore


@pytest.fixture
def stores(tmp_path):
    """Two described stores and a teacher's in the usual place."""
    root = tmp_path / "runs" / "vectors"
    return {
        "large": make_store(root, (0, 5), (5, 8), pooling="last", max_length=512),
        "half": make_store(root, (0, 9), model="org/half", dtype="float16"),
        "teacher": make_plain(root / "rounds" / "vectors", (0, 4)),
    }


def cells(line):
    return [cell for cell in line.split("  ") if cell.strip()]


def test_ls_prints_a_row_a_store(narrlit, stores):
    leftover(stores["large"], 2)
    found = narrlit("store", "ls")
    assert (found.code, found.err) == (0, "")
    header, *rows = [[cell.strip() for cell in cells(line)] for line in found.out.splitlines()]
    assert header[:5] == ["store", "model", "settings", "vectors", "numbers"]
    told = {row[0]: row[1:-1] for row in rows}  # the last is the time
    assert set(told) == {stores["large"].name, stores["half"].name, "rounds/vectors"}
    size = f"{sum(path.stat().st_size for path in stores['large'].iterdir()) / 1000:.1f} kB"
    settings = "pooling=last max_length=512"
    assert told[stores["large"].name] == ["org/name", settings, "8", "6", "float32", "2", size, "1"]
    assert told[stores["half"].name][:6] == ["org/half", "-", "9", "6", "float16", "1"]
    assert told["rounds/vectors"][:5] == ["no description", "-", "4", "6", "float32"]


def test_ls_prints_json(narrlit, stores):
    flip(shard_of(stores["large"], 3))
    broken = shard_of(stores["large"], 5)
    broken.write_bytes(b"")
    found = narrlit("store", "ls", stores["large"], "--json")
    (one,) = json.loads(found.out)
    assert (one["model"], one["vectors"], one["shards"], one["doubled"]) == ("org/name", 3, 2, 0)
    assert one["space"]["pooling"] == "last"
    assert one["settings"] == {"pooling": "last", "max_length": 512}
    assert one["folder"] == str(stores["large"])
    assert [fault.startswith(str(broken)) for fault in one["faults"]] == [True]


def test_ls_tells_what_is_broken_and_goes_on(narrlit, stores):
    broken = shard_of(stores["large"], 5)
    broken.write_bytes(b"")
    found = narrlit("store", "ls")
    assert found.code == 0
    assert found.out.splitlines()[-1].startswith(f"runs/vectors/{stores['large'].name}/{broken.name}: ")
    assert len(found.out.splitlines()) == 5


def test_verify_tells_a_line_a_store_and_a_line_a_fault(narrlit, stores):
    found = narrlit("store", "verify")
    assert (found.code, len(found.out.splitlines())) == (0, 3)
    assert f"{stores['large'].name}: 2 sound shards with 8 vectors\n" in found.out
    damaged = shard_of(stores["large"], 3)
    flip(damaged)
    without_checksum(shard_of(stores["large"], 5))
    found = narrlit("store", "verify")
    assert found.code == 1
    lines = [line for line in found.out.splitlines() if stores["large"].name in line]
    assert lines[0].endswith(": 1 sound shard with 5 vectors, 1 of them without a checksum; 1 fault")
    assert f"{damaged.name}: its vectors have changed" in lines[1]
    assert len(lines) == 2


def test_prune_only_tells_and_with_yes_does_it(narrlit, stores):
    left = leftover(stores["large"], 2)
    found = narrlit("store", "prune")
    assert found.code == 0
    assert found.out == f"runs/vectors/{stores['large'].name}: 1 file, left by killed processes, 100 B\n"
    assert "nothing is removed yet: --yes frees 100 B" in found.err
    assert left.exists()
    found = narrlit("store", "prune", "--yes")
    assert "100 B freed" in found.err
    assert not left.exists()
    found = narrlit("store", "prune", "--yes")
    assert (found.out, "nothing to remove" in found.err) == ("", True)
    assert_whole(stores["large"], 8)


def test_prune_merges_and_tells_what_it_leaves_alone(narrlit, stores):
    add_spans(VectorStore(stores["half"], "float16"), (9, 11))
    flip(shard_of(stores["half"], 9))
    found = narrlit("store", "prune", "--merge", "--yes")
    assert found.code == 0
    assert f"{stores['large'].name}: 2 files, merged into one, " in found.out
    assert "left alone: runs/vectors/half-" in found.err
    assert len(shard_paths(stores["large"])) == 1
    assert_whole(stores["large"], 8)
    found = narrlit("store", "prune", "--broken", "--yes")
    assert f"{stores['half'].name}: 1 file, broken, " in found.out
    assert shard_paths(stores["half"]) == [shard_of(stores["half"], 2)]


def test_prune_removes_whole_stores(narrlit, stores):
    found = narrlit("store", "prune", "runs", "--model", "org/half", "--older-than", "0.00000001", "--yes")
    assert found.code == 0, found.err
    assert not stores["half"].exists()
    assert_whole(stores["large"], 8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ls", "nowhere"], "nowhere is no folder: name one"),
        (["list"], "list"),
        ([], "action"),
        (["ls", "--yes"], "--yes is an option of prune and has no use with ls"),
        (["verify", "--merge"], "--merge is an option of prune"),
        (["verify", "--older-than", "3"], "--older-than is an option of prune"),
        (["ls", "--model", "m"], "--model is an option of prune"),
        (["prune", "--json"], "--json is an option of ls"),
        (["verify", "--json"], "--json is an option of ls"),
        (["prune", "--merge", "--broken"], "--broken and --merge have no use together"),
        (["prune", "--older-than", "0"], "--older-than 0"),
        (
            ["prune", "--model", "org/none"],
            "--model org/none: there is no store of it; the models are org/half, org/name",
        ),
    ],
)
def test_options_without_use_cost_one_line(narrlit, stores, arguments, said):
    found = narrlit("store", *arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("narrlit: error: ")
    assert len(found.err.splitlines()) == 1
    assert said in found.err


@pytest.mark.parametrize("action", ["ls", "verify", "prune"])
def test_a_folder_without_a_store_is_told(narrlit, tmp_path, action):
    (tmp_path / "empty").mkdir()
    found = narrlit("store", action, "empty")
    assert (found.code, found.out) == (0, "")
    assert "empty holds no store of vectors" in found.err


def test_help_tells_the_optional_folder(narrlit):
    found = narrlit("store", "--help")
    assert found.code == 0
    assert "[folder]" in found.out
    assert "runs/vectors" in found.out
