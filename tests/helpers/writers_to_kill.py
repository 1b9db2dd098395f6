"""Writers of embeddings to each place that a run may be killed in, for processes of their own.

python writers_to_kill.py PLACE OUT STORIES MODEL
"""

import sys

import narrlit
from narrlit.embedding_cache import filling
from narrlit.library import index_writing
from narrlit.library.options import PartOptions, TableOptions


def write(place, out, stories, model):
    """Embed the stories of a file into a folder, a table, an index or an embedding cache."""
    encoder = narrlit.load(str(model), cache=str(out) if place == "cache" else None)
    match place:
        case "folder":
            narrlit.embed_to_folder(stories, out, encoder, parts=PartOptions(part_rows=4))
        case "table":
            narrlit.VectorTable.create(f"file://{out}", stories, encoder, options=TableOptions(part_rows=4))
        case "index":
            narrlit.Index.create(out, narrlit.read_stories(stories), encoder)
        case "cache":
            encoder.embed(list(narrlit.read_stories(stories)))


if __name__ == "__main__":
    # Many small commits
    index_writing.SECONDS_PER_SPAN, filling.SECONDS_PER_SHARD = 0.01, 0.01
    filling.FEWEST = 4
    write(*sys.argv[1:])
