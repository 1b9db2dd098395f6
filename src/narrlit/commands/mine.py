"""narrlit mine: hard negatives for training examples, by an encoder's cosines."""

from typing import Annotated

import narrlit
from narrlit.commands.options import LoadOptions, StoryOptions
from narrlit.console import say
from narrlit.files import Output


def mine(
    triples: str,
    *,
    model: str,
    loading: LoadOptions,
    out: Annotated[str, Output(suffixes=[".jsonl"])],
    per_example: int = 9,
    margin: float = -0.05,
    strict: bool = False,
) -> None:
    """Add to each training example the dissimilar stories of the file that are nearest to its anchor.

    Never added: stories linked with the anchor by a chain of anchors and positives, and stories so near that they may
    be similar. Negatives mined before are replaced, others are kept.

    Args:
        triples: JSON Lines or CSV of labeled triples, or of anchors with positives and negatives.
        model: a folder, a run folder, a checkpoint, a hub id, narrlit-mini or minilm.
        loading: how it is loaded.
        out: file to write, JSON Lines (.jsonl) of anchor, positive and negatives with their kind.
        per_example: largest number of negatives to add to an example.
        margin: leave out stories whose cosine with the anchor is above the positive's plus this.
        strict: refuse the first row that can't be used, in place of dropping and counting it.
    """
    encoder = StoryOptions().load(model, loading)
    mining = narrlit.mine(triples, encoder, per_example=per_example, margin=margin, strict=strict, progress=True)
    mining.write(out)
    say(f"{out}: {mining}")
