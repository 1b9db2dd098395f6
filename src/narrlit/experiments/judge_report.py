"""Figures of a judge: language model and similarities alone and together, overrides, accuracy by margin and label."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from narrlit.experiments.report import difference_cell
from narrlit.llm.judge import Judgement
from narrlit.metrics.significance import AccuracySummary, paired, wilson_interval
from narrlit.tables import markdown_table

Choices = Sequence[bool | None]
"""For each of N triples True if A is closer; None where a system or the labels do not say."""

NAMES = {
    "hybrid": "language model, else similarities",
    "similarities": "similarities alone",
    "model": "language model alone, triples with a choice",
    "model_of_all": "language model alone, no choice counted as wrong",
    "as_given": "its answers to A and B as in the file",
    "swapped": "its answers to A and B swapped",
}
SYSTEMS = ("similarities", "model", "hybrid")
"""Systems whose accuracy is given by part of the triples."""


def accuracy_of(choices: Choices, labels: Choices) -> AccuracySummary:
    """Compute the accuracy over the triples that have a choice and a label (or another system's choice).

    >>> print(accuracy_of([True, False, None, True], [True, True, True, None]))
    0.500 [0.095, 0.905] (1 of 2)
    """
    known = [x == y for x, y in zip(choices, labels, strict=True) if x is not None and y is not None]
    return AccuracySummary(n=len(known), correct=sum(known))


def overrides(model: Choices, similarities: Choices, labels: Choices) -> dict[str, Any]:
    """Count the choices against the similarities, and how many of these are right."""
    agreed = accuracy_of(model, similarities)
    against = [x if s is not None and x != s else None for x, s in zip(model, similarities, strict=True)]
    return {**share(agreed.n - agreed.correct, agreed.n), "right": accuracy_of(against, labels).as_dict()}


def share(count: int, of: int) -> dict[str, Any]:
    """Return a count as a share with Wilson's 95 % interval.

    >>> share(1, 4)["share"], share(0, 0)["share"]
    (0.25, None)
    """
    known = {"share": count / of, "interval": list(wilson_interval(count, of))} if of else {"share": None}
    return {"n": count, "of": of, **known}


def accuracies(part: Iterable[int], systems: Mapping[str, Choices], labels: Choices) -> dict[str, Any]:
    """Compute the accuracy of each system over a part of the triples, given by index."""
    indices = list(part)
    known = [labels[i] for i in indices]
    return {name: accuracy_of([x[i] for i in indices], known).as_dict() for name, x in systems.items()}


def by_margin(
    margins: Sequence[float], systems: Mapping[str, Choices], labels: Choices, parts: int = 5
) -> list[dict[str, Any]]:
    """Compute accuracies by the difference of the similarities, in `parts` of equal size, largest difference first."""
    order = sorted((i for i, label in enumerate(labels) if label is not None), key=lambda i: -margins[i])
    ends = [len(order) * part // parts for part in range(parts + 1)]
    return [
        {"margin": [margins[part[-1]], margins[part[0]]], "accuracy": accuracies(part, systems, labels)}
        for part in (order[start:end] for start, end in pairwise(ends) if end > start)
    ]


def by_label(systems: Mapping[str, Choices], labels: Choices) -> list[dict[str, Any]]:
    """Compute accuracies on the triples labeled A and on those labeled B (Comhis, section 6.3)."""
    return [
        {"label": name, "accuracy": accuracies((i for i, x in enumerate(labels) if x is label), systems, labels)}
        for name, label in (("A", True), ("B", False))
        if label in labels
    ]


def judge_report(judgements: Sequence[Judgement], labels: Choices) -> dict[str, Any]:
    """Compute all figures of N judgements, as plain data; accuracies are over the triples with a label."""
    swapped = len(judgements[0].answers) > 1
    systems: dict[str, Choices] = {
        "hybrid": [judgement.a_is_closer for judgement in judgements],
        "similarities": [judgement.by_similarity for judgement in judgements],
        "model": [judgement.choice for judgement in judgements],
    }
    for order, name in enumerate(("as_given", "swapped") if swapped else ()):
        systems[name] = [judgement.answers[order].a_is_closer for judgement in judgements]
    accuracy = {name: accuracy_of(choices, labels) for name, choices in systems.items()}
    accuracy["model_of_all"] = replace(accuracy["model"], n=accuracy["hybrid"].n)
    margins = [abs(judgement.scores[0] - judgement.scores[1]) for judgement in judgements]
    ties = sum(margin == 0 and label is not None for margin, label in zip(margins, labels, strict=True))
    accuracy["similarities"] = replace(accuracy["similarities"], ties=ties)
    reasons = Counter(judgement.fallback for judgement in judgements if judgement.fallback)
    first = [
        answer.a_is_closer == (order == 0)
        for judgement in judgements
        for order, answer in enumerate(judgement.answers)
        if answer.a_is_closer is not None
    ]
    same = accuracy_of(systems.get("as_given", []), systems.get("swapped", []))
    known = [i for i, label in enumerate(labels) if label is not None]
    hybrid, similar = ({i for i in known if systems[name][i] != labels[i]} for name in ("hybrid", "similarities"))
    compared = {name: systems[name] for name in SYSTEMS}
    return {
        "triples": len(judgements),
        "labeled": len(known),
        "accuracy": {name: accuracy[name].as_dict() for name in NAMES if name in accuracy} if known else None,
        "hybrid_against_similarities": paired(hybrid, similar, len(known)) if known else None,
        "fallbacks": {**share(reasons.total(), len(judgements)), "by_reason": dict(reasons.most_common())},
        "overrides": overrides(systems["model"], systems["similarities"], labels),
        "swap_agreement": share(same.correct, same.n) if swapped else None,
        "shown_first": share(sum(first), len(first)),
        "by_margin": by_margin(margins, compared, labels),
        "by_label": by_label(compared, labels),
    }


def judge_table(report: Mapping[str, Any]) -> str:
    """Format the figures as Markdown."""
    accuracy, fallbacks, against = report["accuracy"], report["fallbacks"], report["overrides"]
    head = f"{report['triples']} triples, none has a label.\n"
    if accuracy:
        rows = [{"judge": NAMES[name], "accuracy (95 % interval)": _accuracy(one)} for name, one in accuracy.items()]
        head = markdown_table("", rows)
    reasons = "".join(f"; {count} {reason}" for reason, count in fallbacks["by_reason"].items())
    notes = [f"Fallbacks to the similarities: {_share(fallbacks)}{reasons}"]
    notes.append(f"Overrides of the similarities: {_share(against)}; right on {_accuracy(against['right'])}")
    if report["swap_agreement"]:
        notes.append(f"Same story chosen with A and B swapped: {_share(report['swap_agreement'])}")
    notes.append(f"Candidate shown first chosen: {_share(report['shown_first'])}")
    if accuracy:
        notes.append(f"Hybrid against similarities: {difference_cell(report['hybrid_against_similarities'])}")
    lines = [head, *(f"- {note}." for note in notes), ""]
    for title, parts in (("label", "by_label"), ("difference of similarities", "by_margin")):
        rows = [{title: _part(one), **{x: _accuracy(one["accuracy"][x]) for x in SYSTEMS}} for one in report[parts]]
        lines += [markdown_table("", rows)] if rows else []
    return "\n".join(lines)


def _part(one: Mapping[str, Any]) -> str:
    return str(one["label"]) if "label" in one else "{:.4f} to {:.4f}".format(*one["margin"])


def _share(one: Mapping[str, Any]) -> str:
    return f"{one['n']} of {one['of']}" + (f" ({one['share']:.1%})" if one["of"] else "")


def _accuracy(one: Mapping[str, Any]) -> str:
    return str(AccuracySummary(one["n"], one["correct"])) if one["n"] else "none with a label"
