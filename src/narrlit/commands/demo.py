"""narrlit demo: the whole way on invented stories, by the commands that a person would type."""

import contextlib
import io
import json
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np

from narrlit.cli import main
from narrlit.console import say
from narrlit.errors import NarrlitError
from narrlit.files import atomic_path, check_writable

BASELINES = ("random", "longer", "jaccard", "tfidf")
LARGEST_DIFFERENCE = 1e-5


def demo(*, out: str = "runs/demo") -> None:
    """Write StoryWorld, judge baselines and frozen MiniLM, train, judge again, export, embed, submit and check.

    Args:
        out: folder for all that is made; must not exist or be empty.
    """
    folder = Path(out)
    check_writable(folder, folder=True)
    began = time.monotonic()
    world, run, model, archive = (str(folder / n) for n in ("storyworld", "quickstart", "model", "submission.zip"))
    judged, triples, stories, vectors = (
        str(folder / n)
        for n in (
            "storyworld/validation.jsonl",
            "storyworld/test.jsonl",
            "storyworld/test_stories.jsonl",
            "vectors.npy",
        )
    )
    _do("storyworld", "--out", world, "--test", "50")
    rows = {name: _accuracy("evaluate", judged, "--baseline", name, "--json") for name in BASELINES}
    rows["minilm, frozen"] = _accuracy("evaluate", judged, "--model", "minilm", "--json")
    logger = "--trainer.logger.init_args"
    _do("fit", "--config", "configs/quickstart.yaml", f"{logger}.save_dir", out, f"{logger}.version", "")
    rows["minilm, trained"] = _accuracy("evaluate", judged, "--model", run, "--json")
    _do("export", run, "--out", model)
    _do("embed", stories, "--model", model, "--out", vectors)
    difference = _compare(model, stories, Path(vectors))
    tracks = ("--track-a", triples, "--track-b", stories)
    _do("submit", "--model", model, *tracks, "--out", archive)
    _do("submit", "--check", archive, *tracks)
    table = _table(rows)
    with atomic_path(folder / "accuracies.md") as temporary:
        temporary.write_text(table, encoding="utf-8")
    print(f"\nAccuracy on 200 validation triples of StoryWorld, with 95 % intervals:\n\n{table}")
    print(f"vectors: narrlit and sentence-transformers differ by at most {difference:.1e}")
    print(f"stories {world}, run {run} (tensorboard --logdir {shlex.quote(out)})\nmodel {model}, submission {archive}")
    print(f"{time.monotonic() - began:.0f} seconds in all")


def _do(*words: str) -> None:
    say(f"\n$ narrlit {shlex.join(words)}")
    if main(list(words)) != 0:
        raise NarrlitError("the demo stopped at the command above")


def _accuracy(*words: str) -> dict[str, Any]:
    with contextlib.redirect_stdout(io.StringIO()) as answer:
        _do(*words)
    found: dict[str, Any] = json.loads(answer.getvalue())
    say(f"accuracy {found['accuracy']:.3f}")
    return found


def _compare(model: str, stories: str, vectors: Path) -> float:
    """The largest difference between the vectors that narrlit wrote and sentence-transformers' own of a folder."""
    from sentence_transformers import SentenceTransformer

    from narrlit.data.readers import read_stories

    say(f"\n>>> sentence_transformers.SentenceTransformer({model!r}).encode(stories)")
    peer = SentenceTransformer(model, device="cpu", local_files_only=True)
    theirs = peer.encode([story.text for story in read_stories(stories).records])
    difference = float(np.abs(theirs - np.load(vectors, allow_pickle=False)).max())
    if difference > LARGEST_DIFFERENCE:
        raise NarrlitError(f"{model}: narrlit and sentence-transformers differ by {difference:.1e}")
    return difference


def _table(rows: dict[str, dict[str, Any]]) -> str:
    lines = [f"| {'scorer':<15} | accuracy | 95 % interval  | correct | ties |", f"|{'-' * 17}|---:|---|---:|---:|"]
    for name, row in rows.items():
        low, high = row["interval"]
        found = (
            f"{row['accuracy']:>8.3f} | [{low:.3f}, {high:.3f}] | {row['correct']:>3} of {row['n']} | {row['ties']:>4}"
        )
        lines.append(f"| {name:<15} | {found} |")
    return "\n".join(lines) + "\n"
