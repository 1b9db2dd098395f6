"""narrlit augment: back-translations of stories added to training examples."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrlit.console import counted, say
from narrlit.data.layouts import example_fault
from narrlit.data.readers import read_examples
from narrlit.data.records import Example
from narrlit.data.writers import write_examples
from narrlit.errors import OptionError
from narrlit.experiments.report import keep_report
from narrlit.files import atomic_path, check_apart, check_writable
from narrlit.options import Device, pick_device
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

    Raises:
        OptionError: if the layer is negative or has no encoder.
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
        triples: JSON Lines or CSV of labelled triples, or of anchors with positives and negatives.
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
    say(data.summary())
    place = pick_device(device)
    scorer = None
    if quality.bertscore != "none":  # before the long work, so that a wrong name shows at once
        from narrlit.metrics.bertscore import load_bertscorer

        scorer = load_bertscorer(quality.bertscore, quality.bertscore_layer, place)
    texts = list(dict.fromkeys(text for example in data.records for text in example.texts))
    versions: dict[str, list[Example | None]] = {}
    scores: dict[str, BERTScores | None] = {}
    entries = {}
    for pivot, stories in _translated(texts, pivots, place, target.with_suffix(".translations.jsonl")):
        versions[pivot], left_out = _versions(data.records, stories)
        used = [(old, new) for old, new in zip(data.records, versions[pivot], strict=True) if new is not None]
        pairs = dict(pair for old, new in used for pair in zip(old.texts, new.texts, strict=True))
        scores[pivot] = None if scorer is None else scorer(list(pairs.values()), list(pairs))
        entries[pivot] = {"versions": len(used), "left_out": left_out, "stories": len(pairs), **_figures(scores[pivot])}
    rows = []
    for number, example in enumerate(data.records):
        group = example.group or sha256(json.dumps(example.texts).encode()).hexdigest()[:16]
        new = [each[number] for each in versions.values()]
        rows += [replace(row, group=group) for row in (example, *new) if row is not None]
    write_examples(target, rows)
    made = len(rows) - len(data.records)
    say(f"{target}: {counted(len(data.records), 'example')} and {counted(made, 'version')} of them")
    settings = asdict(pivots) | asdict(quality) | {"bertscore_layer": scorer.layer if scorer else None}
    content = {"rows": len(data.records), "versions": made, "settings": settings, "pivots": entries, "paper": PAPER}
    if report is not None:
        keep_report(Path(report), "report", content, _table(content))
        _box_plot(Path(report) / "bertscore.svg", {name: each.f1 for name, each in scores.items() if each is not None})
    print(_table(content), end="")


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
    examples: Sequence[Example], stories: dict[str, BackTranslation]
) -> tuple[list[Example | None], Counter[str]]:
    """Version of each example, None if one of its stories can't be used; and the reasons."""
    versions: list[Example | None] = []
    left_out: Counter[str] = Counter()
    for example in examples:
        version = example.with_texts([stories[text].text for text in example.texts])
        fault = next((stories[t].fault for t in example.texts if stories[t].fault), None) or example_fault(version)
        versions.append(None if fault else version)
        left_out.update([fault] if fault else [])
    return versions, left_out


def _figures(scores: "BERTScores | None") -> dict[str, Any]:
    """Mean, standard deviation and quartiles of each score."""
    import numpy as np

    if scores is None or not len(scores.f1):
        return dict.fromkeys(SCORES)
    entry: dict[str, Any] = {"truncated": scores.truncated}
    for name in SCORES:
        values = getattr(scores, name)
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        spread = {"mean": float(values.mean()), "standard_deviation": deviation}
        entry[name] = {"n": len(values), **spread, "quartiles": [low, middle, high]}
    return entry


def _table(content: dict[str, Any]) -> str:
    lines = [
        "| pivot | versions | left out | stories | precision | recall | F1 | F1 in the paper |",
        "|---|---:|---:|---:|---|---|---|---|",
    ]
    for name, entry in content["pivots"].items():
        cells = [entry[score] and "{mean:.3f} ± {standard_deviation:.3f}".format(**entry[score]) for score in SCORES]
        paper = "{:.2f} ± {:.2f}".format(*PAPER[name]) if name in PAPER else "none"
        reasons = ", ".join(f"{count} {reason}" for reason, count in entry["left_out"].items()) or "0"
        row = [name, entry["versions"], reasons, entry["stories"], *(cell or "none" for cell in cells), paper]
        lines.append(f"| {' | '.join(map(str, row))} |")
    if content["settings"]["bertscore"] != "none":
        encoder = "layer {bertscore_layer} of {bertscore}".format(**content["settings"])
        lines += [
            "",
            f"Mean ± standard deviation over stories; BERTScore by {encoder}, not rescaled, without idf weights.",
        ]
    return "\n".join(lines) + "\n"


def _box_plot(path: Path, values: dict[str, Any]) -> None:
    values = {name: each for name, each in values.items() if len(each)}
    if not values:
        return
    from matplotlib.figure import Figure

    axes = Figure(figsize=(1.5 + 1.2 * len(values), 4), layout="tight").add_subplot(ylabel="BERTScore F1")
    axes.boxplot(list(values.values()), tick_labels=[f"{name} (n = {len(each)})" for name, each in values.items()])
    with atomic_path(path) as temporary:
        axes.figure.savefig(temporary)
