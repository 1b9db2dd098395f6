"""narrlit mine: add hard negatives to training examples, chosen by cosine similarity."""

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
    """Add hard negatives to each training example: other stories of the file with a high cosine to its anchor.

    Stories connected to the anchor by a chain of anchors and positives are excluded, and so are stories so close to it
    that they may be false negatives. Negatives that an earlier run added are replaced; all others are kept.

    Args:
        triples: JSON Lines or CSV of labeled triples, or of anchors with positives and negatives.
        model: a folder, a run, a checkpoint, a hub id, narrlit-mini or minilm.
        loading: how the model is loaded.
        out: JSON Lines file (.jsonl) to write: anchor, positive and negatives with their kind.
        per_example: maximum number of negatives to add to an example.
        margin: skip stories with a cosine to the anchor above that of the positive plus this margin.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
    """
    encoder = StoryOptions().load(model, loading)
    mining = narrlit.mine(triples, encoder, per_example=per_example, margin=margin, strict=strict, progress=True)
    mining.write(out)
    say(f"{out}: {mining}")
