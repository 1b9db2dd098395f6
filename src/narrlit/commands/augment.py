"""narrlit data augment: add back-translations of stories to training examples."""

from pathlib import Path
from typing import Annotated

import narrlit
from narrlit.console import say
from narrlit.encoding.options import Device
from narrlit.experiments.options import Quality
from narrlit.files import Output
from narrlit.preprocessing.pivots import Pivots


def augment(
    triples: str,
    *,
    out: Annotated[str, Output(suffixes=[".jsonl"]), Output("{stem}.translations.jsonl", continued=True)],
    mixed: bool = False,
    pivots: Pivots = Pivots(),
    quality: Quality = Quality(),
    report: Annotated[str | None, Output.folder("report.json", "report.md", "bertscore.svg")] = None,
    device: Device = "auto",
    strict: bool = False,
) -> None:
    """Write each training example, followed by back-translated versions of it: sentence by sentence.

    An example and its versions share a group, so that they fall into the same fold. Repeat the command to resume:
    finished translations are kept in NAME.translations.jsonl next to the output.

    Args:
        triples: JSON Lines or CSV of labeled triples, or of anchors with positives and negatives.
        out: JSON Lines file to write: anchor, positive, negatives with their kind, and group.
        mixed: replace one story of an example at a time, which gives a triple 3 versions per language; by default all
            stories are replaced together, which gives 1 version per language.
        pivots: pivot languages and translation models.
        quality: settings of BERTScore, which measures how close the versions are to the originals.
        report: folder for report.json, report.md and a box plot, bertscore.svg.
        device: device to compute on.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
    """
    log = Path(out).with_suffix(".translations.jsonl")
    result = narrlit.back_translate_examples(
        triples, log=log, pivots=pivots, quality=quality, mixed=mixed, device=device, strict=strict, progress=True
    )
    result.write(out)
    say(f"{out}: {result.summary}")
    if report is not None:
        result.write_report(report)
    print(result)
