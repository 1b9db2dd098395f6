"""Embedding stories on a CPU: narrlit's packed batches against sentence-transformers' `encode`.

Both sides load the same model, read the same texts in the same run and tokenise within the time measured.
"""

import time
from typing import TYPE_CHECKING

import numpy as np
from measure import MAX_TOKENS, Padding, Ratio, Texts, begin, interleave, machine, parser, peer_model, table, text_sets
from numpy.typing import NDArray

from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

AIM = 1.3
LARGEST_DIFFERENCE = 1e-5
Vectors = NDArray[np.float32]


def compare(peer: "SentenceTransformer", encoder: Encoder, texts: Texts, rounds: int) -> tuple[list[str], str, float]:
    """Embed one set of texts on both sides: a table row, a line on the texts, the largest difference of a cosine."""
    vectors: dict[str, Vectors] = {}

    def theirs() -> float:
        start = time.process_time()
        vectors["peer"] = peer.encode(texts.texts, batch_size=32, show_progress_bar=False)
        return time.process_time() - start

    def ours() -> float:
        start = time.process_time()
        vectors["ours"], _ = embed(encoder, texts.texts, progress=False)
        return time.process_time() - start

    counted = warm_up(peer, encoder, texts)
    times = interleave({"peer": theirs, "ours": ours}, rounds)
    ratio = Ratio.of(times["peer"], times["ours"])
    difference = float(np.abs(cosines(vectors["peer"]) - cosines(vectors["ours"])).max())
    count = len(texts.texts)
    row = [texts.name, "fp32", f"{count / ratio.peer:.1f}", f"{count / ratio.ours:.1f}", *ratio.cells(AIM)]
    return [*row, f"{difference:.0e}"], f"{texts.name}: {texts.describe()}; {counted.describe()}", difference


def cosines(vectors: Vectors) -> NDArray[np.float64]:
    """Cosines of all pairs, in double precision so that only the vectors differ."""
    exact = vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    pairs: NDArray[np.float64] = exact @ exact.T
    return pairs


def warm_up(peer: "SentenceTransformer", encoder: Encoder, texts: Texts) -> Padding:
    """Run both sides once, untimed, and count what the peer's batches hold."""
    counted = Padding()
    handle = peer[0].register_forward_pre_hook(counted)
    peer.encode(texts.texts, batch_size=32, show_progress_bar=False)
    handle.remove()
    embed(encoder, texts.texts[:32], progress=False)
    return counted


def main() -> None:
    """Measure and print."""
    from sentence_transformers import __version__

    options = parser("embedding: narrlit against sentence-transformers")
    options.add_argument("--count", type=int, default=128, help="texts (default 128)")
    chosen = begin(options, count=12)
    peer = peer_model()
    encoder = Encoder(EncoderConfig(model="minilm", max_length=MAX_TOKENS)).eval()
    print(f"embedding with all-MiniLM-L6-v2, {MAX_TOKENS} tokens: narrlit against sentence-transformers {__version__}")
    print(machine(chosen.threads, chosen.rounds), flush=True)
    results = [
        compare(peer, encoder, texts, chosen.rounds)
        for texts in text_sets(chosen.stories, chosen.lengths, chosen.count)
    ]
    for _, line, _ in results:
        print(line)
    header = ["texts", "numbers", "peer stories/s", "ours stories/s", "ratio", "range", "aim", "cosines differ by"]
    print(table(header, [row for row, _, _ in results]))
    if chosen.quick:
        print("a quick run tests the script: its ratios mean nothing")
    worst = max(difference for _, _, difference in results)
    if worst >= LARGEST_DIFFERENCE:
        raise SystemExit(
            f"vectors differ: a pair's cosine by {worst:.1e}, {LARGEST_DIFFERENCE:.0e} is the most allowed"
        )


if __name__ == "__main__":
    main()
