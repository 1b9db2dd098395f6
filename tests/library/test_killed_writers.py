"""kill -9 of a process that embeds, wherever it is: what was committed is kept, and nothing of it is embedded again."""

import json
import random
import subprocess
import sys
import time

import lancedb
import numpy as np
import pandas as pd
import pytest
import writers_to_kill

from narrlit.data.schema import Story
from narrlit.data.storyworld import StoryWorld
from narrlit.embedding_cache.shards import Shard
from narrlit.library.parts import PartRecord
from narrlit.library.story_frame import DIGEST, content_digests, stories_of, story_frame
from narrlit.models import embedding

pytestmark = [pytest.mark.slow, pytest.mark.long]

COMMITS = {
    "folder": "part-*.parquet",
    "table": "stories.lance/_versions/*",
    "index": "stories.lance/_versions/*",
    "cache": "*/[!.]*.safetensors",
}
"""Files of a place that are added by each commit."""


@pytest.fixture
def stories(make):
    """360 stories of about 60 words."""
    triples = StoryWorld(4).triples(360)
    return make("s.jsonl", [{"id": f"s{number}", "text": triple.anchor.text} for number, triple in enumerate(triples)])


def stored(place, out):
    """What a place contains: a vector for each story or key, with a name for each; its checksums are verified."""
    if place in ("index", "table"):
        rows = lancedb.connect(str(out)).open_table("stories").to_pandas()
        if place == "index":
            same_stories = stories_of(rows[["id", "title", "text"]])
            assert rows[DIGEST].tolist() == list(content_digests(story_frame(same_stories), list(same_stories)))
        return rows["id"].tolist(), np.array(rows["vector"].tolist())
    if place == "folder":
        for path in out.glob("_parts/*.json"):
            assert PartRecord.model_validate(json.loads(path.read_text())).problem(out) is None
        rows = pd.concat(map(pd.read_parquet, out.glob(COMMITS[place])))
        return rows["id"].tolist(), np.array(rows["embedding"].tolist())
    keys, vectors = [], []
    for path in out.glob(COMMITS[place]):
        shard = Shard.open(path, "numpy")
        assert shard.verify()
        keys += [key for key, _ in shard.rows()]
        vectors.append(shard.vectors)
    return keys, np.concatenate(vectors)


def killed(place, out, arguments, chance):
    """Start a writer, and kill it at a random moment after its first commits."""
    process = subprocess.Popen([sys.executable, writers_to_kill.__file__, place, str(out), *map(str, arguments)])
    least = len([*out.glob(COMMITS[place])]) + chance.randrange(2, 8)
    while len([*out.glob(COMMITS[place])]) < least:
        assert process.poll() is None
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.02))
    process.kill()
    return process.wait()


@pytest.mark.parametrize("place", COMMITS)
def test_a_killed_writer_is_repeated_without_loss(place, stories, tiny, tmp_path, monkeypatch):
    out, chance = tmp_path / "out", random.Random(place)
    for _ in range(2):
        assert killed(place, out, (stories, tiny()), chance) == -9
    kept, _ = stored(place, out)
    assert 0 < len(kept) < 360
    assert len(set(kept)) == len(kept)

    embedded, embed_stories = [], embedding.embed_stories

    def recorded(encoder, items, *options, **named):
        embedded.extend(item for item in items if isinstance(item, Story))  # passages are texts
        return embed_stories(encoder, items, *options, **named)

    monkeypatch.setattr(embedding, "embed_stories", recorded)
    writers_to_kill.write(place, out, stories, tiny())
    assert len(embedded) == 360 - len(kept)

    names, vectors = stored(place, out)
    assert len(names) == 360
    assert len(set(names)) == 360
    assert set(kept) <= set(names)

    writers_to_kill.write(place, tmp_path / "whole", stories, tiny())
    vector_of = dict(zip(*stored(place, tmp_path / "whole"), strict=True))
    np.testing.assert_allclose(vectors, [vector_of[name] for name in names], atol=1e-6)
    assert not [*out.glob(".part-*")]
