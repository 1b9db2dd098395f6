"""Find the twin: stories and relevance judgments from triples whose anchor and similar story tell the same work.

One query a work, the anchor of its first row; relevant are the other texts with the same `wikidata_id`. Dissimilar
stories are left out: nothing says which work they tell. Then, for each model:

    narrlit index twins/stories.jsonl --model minilm --out twins/minilm.index
    narrlit retrieval twins/minilm.index --qrels twins/qrels.tsv --baseline bm25
"""

import argparse
import random
from pathlib import Path

from narrlit.data.rows import read_rows
from narrlit.data.schema import normal_text
from narrlit.data.writers import write_rows


def twins(path: str, works: int | None, seed: int = 0) -> tuple[list[dict[str, str]], list[tuple[str, str]]]:
    """Return stories in random order, and pairs of the ids of a query and a relevant story.

    Args:
        path: rows of anchor_text, text_a, text_b, text_a_is_closer and wikidata_id.
        works: number of works, chosen at random; None: all.
        seed: of the choice and of the order, which decides between equal scores.
    """
    known: set[str] = set()  # a text that two works share is in the first one only
    versions: dict[str, list[str]] = {}
    for row in (row.value for row in read_rows(path).rows):
        for text in (row["anchor_text"], row["text_a" if row["text_a_is_closer"] else "text_b"]):
            if normal_text(text) not in known:
                known.add(normal_text(text))
                versions.setdefault(row["wikidata_id"], []).append(text)
    names = sorted(work for work, own in versions.items() if len(own) > 1)
    random.Random(seed).shuffle(names)
    names = names[:works]
    stories = [
        {"id": f"{work}-{n}", "text": text, "work": work} for work in names for n, text in enumerate(versions[work])
    ]
    random.Random(seed).shuffle(stories)
    return stories, [(f"{work}-0", f"{work}-{n}") for work in names for n in range(1, len(versions[work]))]


def main() -> None:
    """Write stories.jsonl and qrels.tsv."""
    options = argparse.ArgumentParser(description="stories and relevance judgments of the twin test")
    options.add_argument("triples", help="tell_me_again_triplets.jsonl, or rows like its own")
    options.add_argument("--works", type=int, help="a random choice of so many works (default: all)")
    options.add_argument("--out", default="twins", help="folder (default: twins)")
    chosen = options.parse_args()
    stories, qrels = twins(chosen.triples, chosen.works)
    folder = Path(chosen.out)
    write_rows(folder / "stories.jsonl", stories)
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{story}\t1" for query, story in qrels)]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{folder}: {len(stories)} stories, {len({query for query, _ in qrels})} queries")


if __name__ == "__main__":
    main()
