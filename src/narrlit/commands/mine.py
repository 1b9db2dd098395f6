"""narrlit mine: hard negatives for training examples, by an encoder's cosines."""

from pathlib import Path
from typing import TYPE_CHECKING

from narrlit.console import say, say_truncated
from narrlit.data.readers import read_examples
from narrlit.data.writers import write_examples
from narrlit.errors import OptionError
from narrlit.files import check_apart, check_writable
from narrlit.options import Device, pick_device

if TYPE_CHECKING:
    from narrlit.models.mining import NearestWrong


def mine(
    triples: str,
    *,
    model: str,
    out: str,
    per_example: int = 9,
    margin: float = -0.05,
    device: Device = "auto",
    strict: bool = False,
    trust_remote_code: bool = False,
) -> None:
    """Add to each training example the dissimilar stories of the file that are nearest to its anchor.

    Never added: stories linked with the anchor by a chain of anchors and positives, and stories so near that they may
    be similar. Negatives mined before are replaced, others are kept.

    Args:
        triples: JSON Lines or CSV of labelled triples, or of anchors with positives and negatives.
        model: a folder, a run directory, a checkpoint, a hub id or minilm.
        out: file to write, JSON Lines (.jsonl) of anchor, positive and negatives with their kind.
        per_example: largest number of negatives to add to an example.
        margin: leave out stories whose cosine with the anchor is above the positive's plus this.
        device: where to compute.
        strict: refuse the first row that cannot be used instead of dropping and counting it.
        trust_remote_code: run Python files that come with the model.
    """
    if per_example < 1:
        raise OptionError(f"--per-example {per_example}: at least 1 is needed")
    if not -2 <= margin <= 2:  # also true of NaN
        raise OptionError(f"--margin {margin}: a difference of cosines, from -2 to 2, is needed")
    target = Path(out)
    if target.suffix != ".jsonl":
        raise OptionError(f"--out {out}: name a file that ends in .jsonl")
    check_apart({"--out": target}, [triples])
    check_writable(target)
    reading = read_examples(triples, strict=strict)
    say(reading.summary())
    from narrlit.models.mining import mine_negatives
    from narrlit.models.source import load_encoder

    encoder = load_encoder(model, trust_remote_code).to(pick_device(device))
    mining = mine_negatives(encoder, reading.records, per_example, margin)
    say_truncated(mining.truncated, encoder.max_length, *encoder.pieces)
    write_examples(target, mining.examples)
    say(f"{target}: {_summary(mining.found)}")


def _summary(found: "NearestWrong") -> str:
    """Describe what was mined in one line.

    >>> import torch
    >>> from narrlit.models.mining import NearestWrong
    >>> _summary(NearestWrong(torch.tensor([[4, 2], [3, -1], [-1, -1]]), pairs=8, left_out=5))
    '3 negatives mined for 3 examples; 2 got fewer than 2, 1 none; the margin left out 62.5 % of dissimilar stories'
    """
    counts, wanted = (found.rows >= 0).sum(1), found.rows.shape[1]
    line = f"{int(counts.sum())} negatives mined for {len(counts)} examples; "
    line += f"{int((counts < wanted).sum())} got fewer than {wanted}, {int((counts == 0).sum())} none; "
    if not found.pairs:
        return line + "no story is dissimilar to any anchor: links of positives join them all"
    return line + f"the margin left out {100 * found.left_out / found.pairs:.1f} % of dissimilar stories"
