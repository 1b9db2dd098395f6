"""narrlit augment: back-translations of stories added to training examples."""

from pathlib import Path
from typing import Annotated, Literal

import narrlit
from narrlit.console import say
from narrlit.encoding.options import Device
from narrlit.experiments.options import Quality
from narrlit.files import Output
from narrlit.preprocessing.pivots import Pivots


def augment(  # noqa: PLR0913 (options)
    action: Literal["backtranslate"],
    triples: str,
    *,
    out: Annotated[str, Output(suffixes=[".jsonl"]), Output("{stem}.translations.jsonl", continued=True)],
    mixed: bool = False,
    pivots: Pivots,
    quality: Quality,
    report: Annotated[str | None, Output.folder("report.json", "report.md", "bertscore.svg")] = None,
    device: Device = "auto",
    strict: bool = False,
) -> None:
    """Write each training example, followed by versions of it that were translated into other languages and back.

    An example and its versions are of one group, so that folds keep them together. The same command resumes where it
    stopped: finished translations are in NAME.translations.jsonl beside the output.

    Args:
        action: backtranslate: sentence by sentence.
        triples: JSON Lines or CSV of labeled triples, or of anchors with positives and negatives.
        out: JSON Lines file to write: anchor, positive, negatives with their kind, and group.
        mixed: replace one story of an example at a time: a triple has 3 versions per language; by default all stories
            are replaced together: 1 version per language.
        pivots: languages and models.
        quality: BERTScore of the versions.
        report: folder for report.json, report.md and a box plot, bertscore.svg.
        device: device to compute on.
        strict: refuse the first row that can't be used, in place of dropping and counting it.
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
