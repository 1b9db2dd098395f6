"""Using a model, against sentence-transformers: embedding stories, searching an index, starting the commands."""

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import (
    MAX_TOKENS,
    NOT_HERE,
    Row,
    Setting,
    interleave,
    minilm,
    peer_model,
    runs_here,
    storyworld,
    timed,
    warm,
)
from numpy.typing import NDArray

from narrlit.encoding.loading import load
from narrlit.library.index import Index
from narrlit.models.embedding import embed_stories
from narrlit.models.registry import load_encoder
from narrlit.preprocessing.sentences import split_sentences

LARGEST_DIFFERENCE = {"fp32": 1e-5, "bf16": 6e-3}
"""Of a pair's cosine from the peer's in fp32, by precision."""
AIMS = {"fp32": 1.6, "bf16": 3.0}


def embedding(setting: Setting) -> Iterator[Row]:
    """Embed stories; both sides tokenize within the time measured."""
    device = setting.device
    peers, encoders = {"peer fp32": peer_model(device)}, {"fp32": minilm(device)}
    if runs_here("bf16", device):
        peers["peer bf16"] = peer_model(device, torch.bfloat16)
        encoders["bf16"] = load_encoder("minilm", max_length=MAX_TOKENS, long="truncate").to(device).cast("bf16")
    missing = ""
    try:
        importlib.import_module("optimum.intel")
        peers["peer OpenVINO"] = peer_model(device, backend="openvino")
    except ImportError as error:
        missing = f", not run ({error})"
    for texts in setting.texts(12 if setting.quick else 128 * setting.scale):
        vectors: dict[str, NDArray[np.float32]] = {}

        def run(name: str) -> None:
            """Embed on one side, the peer with its defaults."""
            if name in encoders:
                vectors[name] = embed_stories(encoders[name], texts.texts, progress=False).embeddings  # noqa: B023
            else:
                vectors[name] = peers[name].encode(texts.texts, show_progress_bar=False)  # noqa: B023

        variants = {name: partial(timed, partial(run, name), device) for name in (*peers, *encoders)}
        times = warm(variants, setting)
        exact = cosines(vectors["peer fp32"])
        for precision, peer in (("fp32", "fp32"), ("bf16", "fp32"), ("bf16", "bf16"), ("fp32", "OpenVINO")):
            if precision not in encoders:
                yield Row("embedding", texts.name, precision, note=f"peer: {peer}; {NOT_HERE}")
                continue
            row = Row("embedding", texts.name, precision, times.get(f"peer {peer}", []), times[precision])
            row.unit, row.count, row.flops = "stories/s", len(texts.texts), texts.flops
            row.aim = AIMS[precision] if peer == "fp32" else None
            difference = float(np.abs(cosines(vectors[precision]) - exact).max())
            row.note = f"peer: {peer}{missing if not row.peer else ''}; cosines differ by {difference:.0e}"
            row.wrong = row.note if difference >= LARGEST_DIFFERENCE[precision] else ""
            yield row


def cosines(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosines of all pairs, in double precision so that only the vectors differ."""
    exact = vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    pairs: NDArray[np.float64] = exact @ exact.T
    return pairs


def queries(setting: Setting) -> Iterator[Row]:
    """Search StoryWorld's stories for single sentences, against exact search over the same vectors."""
    from sentence_transformers.util import semantic_search

    device: Any = setting.device
    stories, count = (setting.texts(20)[0].texts, 2) if setting.quick else (storyworld(1500), 30)
    asked = [split_sentences(story)[0] for story in stories[:: len(stories) // count]][:count]
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(Path(folder) / "index", stories, load("minilm", max_length=MAX_TOKENS, device=device))
        vectors = torch.from_numpy(index.collection().vectors.copy()).to(device)
        peer = peer_model(device)
        best: dict[str, float] = {}

        def ours() -> None:
            """Search the index."""
            results = [index.search(query, measure="cosine").table() for query in asked]
            best["ours"] = float(results[-1].similarity[0])

        def theirs() -> None:
            """Encode the query and search the vectors."""
            for query in asked:
                vector = peer.encode(query, convert_to_tensor=True)
                hits = semantic_search(vector, vectors, top_k=10)[0]
            best["peer"] = hits[0]["score"]

        runs: dict[str, Callable[[], None]] = {"ours": ours, "peer": theirs}
        times = warm({name: partial(timed, run, device) for name, run in runs.items()}, setting)
    wrong = "" if abs(best["ours"] - best["peer"]) < LARGEST_DIFFERENCE["fp32"] else f"best similarities: {best}"
    note = "by cosine; with a passage of each result"
    data = f"{len(stories)} stories"
    yield Row("search", data, "fp32", times["peer"], times["ours"], "queries/s", len(asked), note=note, wrong=wrong)


def startup(setting: Setting) -> Iterator[Row]:
    """Start the commands, each in a process of its own."""
    model = peer_model("cpu")[0].model.config._name_or_path
    encode = f"import sentence_transformers as s; s.SentenceTransformer({model!r}, device='cpu').encode('A story.')"
    with tempfile.TemporaryDirectory() as folder:
        story = Path(folder) / "story.txt"
        story.write_text("A knight seeks a grail.", encoding="utf-8")
        out = ["--out", f"{folder}/story.npy", "--overwrite"]
        write = ["-m", "narrlit", "embed", str(story), "--model", "minilm", *out]
        jobs = {
            "--help": {"ours": ["-m", "narrlit", "--help"]},
            "import": {"ours": ["-c", "import narrlit"], "peer": ["-c", "import sentence_transformers"]},
            "embed one story": {"ours": write, "peer": ["-c", encode]},
        }
        for job, commands in list(jobs.items())[: 1 if setting.quick else 3]:
            variants = {side: partial(_wall, command, setting) for side, command in commands.items()}
            seconds = interleave(variants, setting.rounds)
            yield Row(f"start: {job}", "", "-", seconds.get("peer", []), seconds["ours"])


def _wall(command: list[str], setting: Setting) -> float:
    environment = {**os.environ, "OMP_NUM_THREADS": str(setting.threads)}
    start = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, capture_output=True, env=environment)
    return time.perf_counter() - start
