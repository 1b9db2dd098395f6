"""narrlit augment: training rows said anew, as a translation there and back says them."""

from contextlib import closing
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from narrlit.commands.augment_report import PAPER, figures, table
from narrlit.commands.box_plot import box_plot
from narrlit.commands.devices import Device, pick_device, say
from narrlit.commands.reports import Entry, keep_report
from narrlit.console import counted
from narrlit.data.readers import read_examples
from narrlit.data.records import Example
from narrlit.data.writers import write_examples
from narrlit.errors import OptionError
from narrlit.files import atomic_path, check_apart, check_writable
from narrlit.metrics.quality import Quality
from narrlit.models.pivots import Pivots

if TYPE_CHECKING:
    import torch

    from narrlit.metrics.bertscore import BERTScorer, BERTScores
    from narrlit.models.back_translation import Versions

PLOT = "bertscore.svg"


def augment(
    action: Literal["backtranslate"],
    triples: str,
    *,
    out: str,
    pivots: Pivots,
    quality: Quality,
    report: str | None = None,
    device: Device = "auto",
    strict: bool = False,
) -> None:
    """Write each training row and its versions, whose stories were translated into other languages and back.

    A row and its versions are of one group, so that folds keep them together. The same command again goes on where it
    was stopped: finished translations are kept beside the result, in NAME.translations.jsonl.

    Args:
        action: backtranslate: sentence by sentence, one version through each language.
        triples: JSON Lines or CSV of labelled triples, or of anchors with positives and negatives.
        out: file to write, JSON Lines (.jsonl) of anchor, positive, negatives with their kind, and group.
        pivots: the languages and the models.
        quality: how versions are judged.
        report: folder for report.json, report.md and a box plot, bertscore.svg.
        device: where to compute.
        strict: refuse the first row that can't be used, instead of dropping and counting it.
    """
    target = _checked(Path(out), triples, report)
    reading = read_examples(triples, strict=strict)
    say(reading.summary())
    place = pick_device(device)
    scorer = _scorer(quality, place)  # before the long work, so that a wrong name is told at once
    versions, divided = _versions(reading.records, pivots, place, target.with_suffix(".translations.jsonl"))
    from narrlit.models.back_translation import with_versions

    rows = with_versions(reading.records, list(versions.values()))
    write_examples(target, rows)
    made = len(rows) - len(reading.records)
    say(f"{target}: {counted(len(reading.records), 'row')} and {counted(made, 'version')} of them")
    scores = {} if scorer is None else _scores(scorer, versions)
    entry = {
        "rows": len(reading.records),
        "versions": made,
        "settings": {**asdict(pivots), **asdict(quality), "bertscore_layer": scorer.layer if scorer else None},
        "pivots": {name: figures(found, divided[name], scores.get(name)) for name, found in versions.items()},
        "paper": PAPER,
    }
    if report is not None:
        _keep(Path(report), entry, scores)
    print(table(entry), end="")


def _checked(target: Path, triples: str, report: str | None) -> Path:
    if target.suffix != ".jsonl":
        raise OptionError(f"--out {target}: name a file that ends in .jsonl")
    check_writable(target)
    check_apart({"--out": target}, [triples])
    if report is not None:
        check_writable(Path(report) / PLOT)
    return target


def _scores(scorer: "BERTScorer", versions: dict[str, "Versions"]) -> dict[str, "BERTScores"]:
    """By language, of every different story's version as a candidate for the story."""
    return {name: scorer(list(found.stories.values()), list(found.stories)) for name, found in versions.items()}


def _scorer(quality: Quality, device: "torch.device") -> "BERTScorer | None":
    if not quality.wanted:
        return None
    from narrlit.metrics.bertscore import load_bertscorer

    return load_bertscorer(quality.bertscore, quality.bertscore_layer, device)


def _versions(
    examples: list[Example], pivots: Pivots, device: "torch.device", log: Path
) -> tuple[dict[str, "Versions"], dict[str, int]]:
    """The versions of the rows through each language, and how many of its sentences were too long and divided."""
    from narrlit.models.back_translation import back_translate, versions
    from narrlit.models.translation import Translator
    from narrlit.models.translation_log import TranslationLog
    from narrlit.models.translation_model import TranslationModel

    texts = list(dict.fromkeys(text for example in examples for text in example.texts))
    load = lru_cache(maxsize=1)(partial(TranslationModel, device=device))  # NLLB's one model is loaded once
    found, divided = {}, {}
    with closing(TranslationLog(log)) as finished:
        if finished.broken:
            say(f"{log}: {counted(finished.broken, 'broken line')}; what it told is translated anew")
        for name in pivots.names:
            there, back = (Translator(load(route.model), route, pivots, finished) for route in pivots.routes(name))
            returned = back_translate(texts, there, back)
            found[name] = versions(examples, dict(zip(texts, returned, strict=True)))
            divided[name] = there.divided + back.divided
    return found, divided


def _keep(folder: Path, entry: Entry, scores: dict[str, "BERTScores"]) -> None:
    keep_report(folder, "report", entry, table(entry))
    found = {name: score.f1.tolist() for name, score in scores.items() if len(score.f1)}
    if not found:
        return
    with atomic_path(folder / PLOT) as temporary:
        temporary.write_text(box_plot(found, "BERTScore F1 by pivot language"), encoding="utf-8")
