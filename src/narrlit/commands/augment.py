"""narrlit augment: back-translations of stories added to training examples."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrlit.console import counted, say
from narrlit.data.readers import read_examples
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.data.writers import write_examples
from narrlit.errors import OptionError
from narrlit.experiments.report import keep_report, table_text
from narrlit.files import atomic_path, check_apart, check_writable
from narrlit.options import Device, pick_device, say_rows
from narrlit.preprocessing.back_translation import BackTranslation, Pivots, TranslationModel, back_translate

if TYPE_CHECKING:
    import torch

    from narrlit.metrics.bertscore import BERTScores

PAPER = {"fr": (0.87, 0.05), "ru": (0.82, 0.05), "hi": (0.83, 0.05)}
"""Mean and standard deviation of BERTScore F1 by pivot: Mendel292, section 2.5, which does not name its encoder."""

SCORES = ("precision", "recall", "f1")


@dataclass(frozen=True)
class Quality:
    """Settings of BERTScore.

    Attributes:
        bertscore: encoder of the token vectors, a transformers folder, hub id or minilm; or none. Scores of different
            encoders can't be compared.
        bertscore_layer: layer of the token vectors, 0 the embeddings; default: the last.
    """

    bertscore: str = "minilm"
    bertscore_layer: int | None = None

    def __post_init__(self) -> None:
        if self.bertscore_layer is not None and (self.bertscore == "none" or self.bertscore_layer < 0):
            raise OptionError(f"--bertscore-layer {self.bertscore_layer}: needs --bertscore and a layer from 0")


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
    """Write each training example and its versions, whose stories were translated into other languages and back.

    An example and its versions are of one group, so that folds keep them together. The same command resumes where it
    stopped: finished translations are in NAME.translations.jsonl beside the output.

    Args:
        action: backtranslate: sentence by sentence, one version per language.
        triples: JSON Lines or CSV of labeled triples, or of anchors with positives and negatives.
        out: JSON Lines file to write: anchor, positive, negatives with their kind, and group.
        pivots: languages and models.
        quality: BERTScore of the versions.
        report: folder for report.json, report.md and a box plot, bertscore.svg.
        device: device to compute on.
        strict: refuse the first row that can't be used, instead of dropping and counting it.
    """
    target = Path(out)
    if target.suffix != ".jsonl":
        raise OptionError(f"--out {out}: give a file that ends in .jsonl")
    check_apart({"--out": out}, [triples])
    for path in (target, *([Path(report) / "report.json"] if report else [])):
        check_writable(path)
    data = read_examples(triples, strict=strict)
    say_rows(data)
    computing = pick_device(device)
    scorer = None
    if quality.bertscore != "none":  # before the long work, so that a wrong name shows at once
        from narrlit.metrics.bertscore import load_bertscorer

        scorer = load_bertscorer(quality.bertscore, quality.bertscore_layer, computing)
    table = StoryTable.of(data.stories.texts)
    versions: dict[str, list[TrainingExample | None]] = {}
    scores: dict[str, BERTScores] = {}
    pivot_entries = {}
    for pivot, stories in _translated(table.texts, pivots, computing, target.with_suffix(".translations.jsonl")):
        versions[pivot], left_out = _versions(data, stories, table)
        used = [(old, new) for old, new in zip(data, versions[pivot], strict=True) if new is not None]
        pairs = dict(pair for old, new in used for pair in zip(old.indices, new.indices, strict=True))
        figures: dict[str, Any] = dict.fromkeys(SCORES)
        if scorer is not None and pairs:
            scores[pivot] = scorer([table[new].text for new in pairs.values()], [table[old].text for old in pairs])
            figures = _figures(scores[pivot])
        pivot_entries[pivot] = {"versions": len(used), "left_out": left_out, "stories": len(pairs), **figures}
    rows = []
    for number, (example, texts) in enumerate(zip(data, data.texts(), strict=True)):
        group = example.group or sha256(json.dumps(texts).encode()).hexdigest()[:16]
        new = [each[number] for each in versions.values()]
        rows += [replace(row, group=group) for row in (example, *new) if row is not None]
    write_examples(target, TrainingExamples(table, rows))
    made = len(rows) - len(data)
    say(f"{target}: {counted(len(data), 'example')} and {counted(made, 'version')} of them")
    settings = asdict(pivots) | asdict(quality) | {"bertscore_layer": scorer.layer if scorer else None}
    content = {"rows": len(data), "versions": made, "settings": settings, "pivots": pivot_entries, "paper": PAPER}
    markdown = _markdown(content)
    if report is not None:
        keep_report(Path(report), "report", content, markdown)
        if scores:
            _box_plot(Path(report) / "bertscore.svg", {name: each.f1 for name, each in scores.items()})
    print(markdown, end="")


def _translated(
    texts: Sequence[str], pivots: Pivots, device: "torch.device", log: Path
) -> "list[tuple[str, dict[str, BackTranslation]]]":
    """Back-translation of each text, by pivot."""
    results = []
    models: dict[str, TranslationModel] = {}
    for pivot in pivots.names:
        ways = []
        for route in pivots.routes(pivot):
            model = models.get(route.model) or TranslationModel(route.model, device, log)
            models = {route.model: model} if pivots.nllb else {}  # Marian models serve one direction
            ways.append(lambda x, m=model, r=route: m.translate(x, r, pivots.beams, pivots.batch_tokens))
        results.append((pivot, dict(zip(texts, back_translate(texts, *ways), strict=True))))
    return results


def _versions(
    examples: TrainingExamples, stories: dict[str, BackTranslation], table: StoryTable
) -> tuple[list[TrainingExample | None], Counter[str]]:
    """Version of each example, None where a story can't be used, and the reasons; new stories join the table."""
    versions: list[TrainingExample | None] = []
    left_out: Counter[str] = Counter()
    for example, texts in zip(examples, examples.texts(), strict=True):
        anchor, positive, *negatives = [stories[text].text for text in texts]
        equal = {
            "anchor is its positive": anchor == positive,
            "anchor among its negatives": anchor in negatives,
            "positive among its negatives": positive in negatives,
        }
        faults = [stories[text].fault for text in texts] + [fault for fault, found in equal.items() if found]
        if fault := next(filter(None, faults), None):
            left_out[fault] += 1
            versions.append(None)
        else:
            indices = [table.add(text) for text in (anchor, positive, *negatives)]
            versions.append(TrainingExample(indices[0], indices[1], tuple(indices[2:]), example.kinds))
    return versions, left_out


def _figures(scores: "BERTScores") -> dict[str, Any]:
    """Mean, standard deviation and quartiles of each score."""
    import pandas as pd

    frame = pd.DataFrame({name: getattr(scores, name) for name in SCORES})
    figures: dict[str, Any] = {"truncated": scores.truncated}
    for name, column in frame.items():
        spread = {"mean": float(column.mean()), "standard_deviation": float(column.std()) if len(column) > 1 else 0.0}
        figures[str(name)] = {"n": len(column), **spread, "quartiles": column.quantile([0.25, 0.5, 0.75]).tolist()}
    return figures


def _markdown(content: dict[str, Any]) -> str:
    rows = []
    for pivot, one in content["pivots"].items():
        reasons = ", ".join(f"{count} {reason}" for reason, count in one["left_out"].items()) or "0"
        row = {"pivot": pivot, "versions": one["versions"], "left out": reasons, "stories": one["stories"]}
        for score in SCORES:
            row[score] = "{mean:.3f} ± {standard_deviation:.3f}".format(**one[score]) if one[score] else "none"
        rows.append(row | {"f1 in the paper": "{:.2f} ± {:.2f}".format(*PAPER[pivot]) if pivot in PAPER else "none"})
    table = table_text("", rows)
    if content["settings"]["bertscore"] == "none":
        return table
    encoder = "layer {bertscore_layer} of {bertscore}".format(**content["settings"])
    note = f"Mean ± standard deviation over stories; BERTScore by {encoder}, not rescaled, without idf weights."
    return f"{table}\n{note}\n"


def _box_plot(path: Path, values: dict[str, Any]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 1.2 * len(values), 4), layout="tight")
    axes = figure.add_subplot(ylabel="BERTScore F1")
    axes.boxplot(list(values.values()), tick_labels=[f"{name} (n = {len(each)})" for name, each in values.items()])
    with atomic_path(path) as temporary:
        figure.savefig(temporary)
