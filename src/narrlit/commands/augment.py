"""narrlit augment: back-translations of stories added to training examples.

Source: Mendel292, section 2.5: "up to 9x more triples per pivot language, producing about 1,800" of 200. A language
gives one version of each story, so the 9 are read as those of three languages: with --mixed each replaces the anchor,
the positive or the negative, one at a time.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from narrlit.console import counted, say
from narrlit.data.readers import read_examples, say_rows
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.data.writers import write_examples
from narrlit.encoding.model_loading import Device, pick_device
from narrlit.errors import OptionError
from narrlit.experiments.report import keep_report
from narrlit.files import Output, atomic_path
from narrlit.preprocessing.back_translation import BackTranslation, Pivots, TranslationModel, back_translate
from narrlit.tables import markdown_table

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


def augment(  # noqa: PLR0913 (options)
    action: Literal["backtranslate"],
    triples: str,
    *,
    out: Annotated[str, Output(), Output("{stem}.translations.jsonl", continued=True)],
    mixed: bool = False,
    pivots: Pivots,
    quality: Quality,
    report: Annotated[str | None, Output.folder("report.json", "report.md", "bertscore.svg")] = None,
    device: Device = "auto",
    strict: bool = False,
) -> None:
    """Write each training example and its versions, whose stories were translated into other languages and back.

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
        strict: refuse the first row that can't be used, instead of dropping and counting it.
    """
    target = Path(out)
    if target.suffix != ".jsonl":
        raise OptionError(f"--out {out}: give a file that ends in .jsonl")
    data = read_examples(triples, strict=strict)
    say_rows(data)
    computing = pick_device(device)
    scorer = None
    if quality.bertscore != "none":  # before the long work, so that a wrong name shows at once
        from narrlit.metrics.bertscore import load_bertscorer

        scorer = load_bertscorer(quality.bertscore, quality.bertscore_layer, computing)
    table = StoryTable.of(data.stories.texts)
    groups = [[example] for example in data]
    scores: dict[str, BERTScores] = {}
    pivot_entries = {}
    for pivot, stories in _translated(table.texts, pivots, computing, target.with_suffix(".translations.jsonl")):
        before = sum(map(len, groups))
        pairs, left_out = _add_versions(groups, stories, table, mixed)
        figures: dict[str, Any] = dict.fromkeys(SCORES)
        if scorer is not None and pairs:
            scores[pivot] = scorer([table[new].text for new in pairs.values()], [table[old].text for old in pairs])
            figures = _figures(scores[pivot])
        versions = sum(map(len, groups)) - before
        pivot_entries[pivot] = {"versions": versions, "left_out": left_out, "stories": len(pairs), **figures}
    rows = []
    for texts, (example, *new) in zip(data.texts(), groups, strict=True):
        group = example.group or sha256(json.dumps(texts).encode()).hexdigest()[:16]
        rows += [replace(row, group=group) for row in (example, *new)]
    write_examples(target, TrainingExamples(table, rows))
    made = len(rows) - len(data)
    say(f"{target}: {counted(len(data), 'example')} and {counted(made, 'version')} of them")
    settings = (
        {"mixed": mixed} | asdict(pivots) | asdict(quality) | {"bertscore_layer": scorer.layer if scorer else None}
    )
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


def _add_versions(
    groups: list[list[TrainingExample]], stories: dict[str, BackTranslation], table: StoryTable, mixed: bool
) -> tuple[dict[int, int], Counter[str]]:
    """Add a pivot's versions of each group's first example; new stories join the table.

    Returns the new story of each one that was replaced, by index, and the reasons of versions that are left out.
    """
    pairs: dict[int, int] = {}
    left_out: Counter[str] = Counter()
    for group in groups:
        example = group[0]
        for replaced in [[i] for i in range(len(example.indices))] if mixed else [range(len(example.indices))]:
            new = [BackTranslation(table[index].text) for index in example.indices]
            for i in replaced:
                new[i] = stories[new[i].text]
            anchor, positive, *negatives = [story.text for story in new]
            equal = {
                "anchor is its positive": anchor == positive,
                "anchor among its negatives": anchor in negatives,
                "positive among its negatives": positive in negatives,
            }
            faults = [story.fault for story in new] + [fault for fault, found in equal.items() if found]
            if fault := next(filter(None, faults), None):
                left_out[fault] += 1
                continue
            indices = [table.add(text) for text in (anchor, positive, *negatives)]
            if any(row.indices == tuple(indices) for row in group):
                left_out["equal to another version"] += 1
                continue
            group.append(TrainingExample(indices[0], indices[1], tuple(indices[2:]), example.kinds))
            pairs.update((example.indices[i], indices[i]) for i in replaced)
    return pairs, left_out


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
    table = markdown_table("", rows)
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
