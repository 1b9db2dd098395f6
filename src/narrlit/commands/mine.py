"""narrlit mine: hard negatives for training examples, by an encoder's cosines."""

from typing import TYPE_CHECKING, Annotated

from narrlit.console import say, say_truncated
from narrlit.data.readers import read_examples, say_rows
from narrlit.data.writers import write_examples
from narrlit.errors import OptionError
from narrlit.files import Output, check_writable
from narrlit.options import LoadOptions, StoryOptions

if TYPE_CHECKING:
    from narrlit.encoding.mining import NearestNegatives


def mine(
    triples: str,
    *,
    model: str,
    use: LoadOptions,
    out: Annotated[str, Output()],
    per_example: int = 9,
    margin: float = -0.05,
    strict: bool = False,
) -> None:
    """Add to each training example the dissimilar stories of the file that are nearest to its anchor.

    Never added: stories linked with the anchor by a chain of anchors and positives, and stories so near that they may
    be similar. Negatives mined before are replaced, others are kept.

    Args:
        triples: JSON Lines or CSV of labeled triples, or of anchors with positives and negatives.
        model: a folder, a run directory, a checkpoint, a hub id or minilm.
        use: how it is loaded.
        out: file to write, JSON Lines (.jsonl) of anchor, positive and negatives with their kind.
        per_example: largest number of negatives to add to an example.
        margin: leave out stories whose cosine with the anchor is above the positive's plus this.
        strict: refuse the first row that cannot be used instead of dropping and counting it.
    """
    if per_example < 1:
        raise OptionError(f"--per-example {per_example}: at least 1 is needed")
    if not -2 <= margin <= 2:
        raise OptionError(f"--margin {margin}: a difference of cosines, from -2 to 2, is needed")
    check_writable(out, ".jsonl")
    examples = read_examples(triples, strict=strict)
    say_rows(examples)
    from narrlit.encoding.mining import mine_negatives

    encoder = StoryOptions().load(model, use)
    mining = mine_negatives(encoder, examples, per_example, margin)
    say_truncated(encoder.coverage, encoder.facts.max_length, *encoder.facts.unit)
    write_examples(out, mining.examples)
    say(f"{out}: {_summary(mining.nearest)}")


def _summary(nearest: "NearestNegatives") -> str:
    """Describe what was mined in one line."""
    counts, wanted = (nearest.rows >= 0).sum(1), nearest.rows.shape[1]
    line = f"{int(counts.sum())} negatives mined for {len(counts)} examples; "
    line += f"{int((counts < wanted).sum())} got fewer than {wanted}, {int((counts == 0).sum())} none; "
    if not nearest.pairs:
        return line + "no story is dissimilar to any anchor: links of positives join them all"
    return line + f"the margin left out {100 * nearest.excluded / nearest.pairs:.1f} % of dissimilar stories"
