"""kill -9 in the middle of an index or a vector table: what was committed is kept, and nothing of it is embedded again.

Folders of parts are killed in tests/commands/test_embed_parts.py, embedding caches in tests/embedding_cache.
"""

import subprocess
import sys
import time

import pytest

import narrlit
from narrlit.data.schema import Story
from narrlit.data.storyworld import StoryWorld
from narrlit.library.options import TableOptions

INDEX = "narrlit.Index.create(sys.argv[1], narrlit.read_stories(sys.argv[2]), narrlit.load(sys.argv[3], cache=None))"
TABLE = """narrlit.VectorTable.create(
    f"file://{sys.argv[1]}", sys.argv[2], narrlit.load(sys.argv[3], cache=None),
    options=narrlit.library.options.TableOptions(part_rows=4),
)"""


@pytest.fixture
def stories(make):
    """360 stories of about 60 words."""
    triples = StoryWorld(4).triples(360)
    return make("s.jsonl", [{"id": f"s{number}", "text": triple.anchor.text} for number, triple in enumerate(triples)])


def ids_of(folder):
    """Ids of the stories in the LanceDB table of a folder."""
    import lancedb

    return lancedb.connect(str(folder)).open_table("stories").search().select(["id"]).limit(None).to_arrow()["id"]


@pytest.mark.slow
@pytest.mark.parametrize("code", [INDEX, TABLE], ids=["index", "table"])
def test_a_killed_run_is_repeated_without_loss(stories, tiny, tmp_path, monkeypatch, code):
    folder = tmp_path / "out"
    script = f"import sys, narrlit, narrlit.library.options; {code}"
    process = subprocess.Popen([sys.executable, "-c", script, str(folder), str(stories), str(tiny())])
    while len([*folder.glob("stories.lance/_versions/*")]) < 4:  # the empty table, and some commits
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.wait()
    kept = ids_of(folder).to_pylist()
    assert 0 < len(kept) < 360

    encoder, embedded = narrlit.load(tiny(), cache=None), []
    read = type(encoder).read

    def recorded(self, items, *options, **named):
        embedded.extend(item for item in items if isinstance(item, Story))  # passages are texts
        return read(self, items, *options, **named)

    monkeypatch.setattr(type(encoder), "read", recorded)
    if code == INDEX:
        narrlit.Index.create(folder, narrlit.read_stories(stories), encoder)
    else:
        narrlit.VectorTable.create(f"file://{folder}", stories, encoder, options=TableOptions(part_rows=4))
    assert sorted(ids_of(folder).to_pylist()) == sorted(f"s{number}" for number in range(360))
    assert len(embedded) == 360 - len(kept)
