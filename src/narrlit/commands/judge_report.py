"""What a judgement by language model and similarities found: accuracies, overrides, fallbacks, and all by margin."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from narrlit.data.reading import counts
from narrlit.experiments.report import Entry, p_value, paired, row
from narrlit.experiments.report import accuracy_cell as with_interval

if TYPE_CHECKING:
    from narrlit.llm.judge import Judgement
    from narrlit.metrics.judging import Choices, MarginPart
    from narrlit.metrics.triples import AccuracySummary

MEANINGS = {
    "hybrid": "the language model, and where it has no choice the similarities",
    "similarities": "the similarities alone",
    "model": "the language model alone, on rows with a choice",
    "model_of_all": "the language model alone, rows without a choice counted as wrong",
    "as_given": "its answers to A and B as in the file",
    "swapped": "its answers to A and B swapped",
}
BY_MARGIN = ("similarities", "model", "hybrid")


def report(judgements: "Sequence[Judgement]", labels: "Choices", told: Entry) -> Entry:
    """The content of the report's JSON.

    Args:
        judgements: of N triples.
        labels: for each whether A is closer; None where that is not known. Accuracies are over the others.
        told: what was judged, by whom and at what cost: triples, model, llm, prompt and usage.
    """
    from narrlit.metrics.judging import agreement, by_margin, overrides

    systems = _systems(judgements)
    labelled = sum(label is not None for label in labels)
    reasons = Counter(judgement.fallback for judgement in judgements if judgement.fallback is not None)
    against = overrides(systems["model"], systems["similarities"], labels)
    swapped = "swapped" in systems
    named_first, answered = _positions(judgements)
    margins = [judgement.margin for judgement in judgements]
    parts = by_margin(margins, {name: systems[name] for name in BY_MARGIN}, labels)
    return {
        **told,
        "rows": len(judgements),
        "labelled": labelled,
        "accuracy": _accuracies(systems, labels, _ties(judgements, labels)) if labelled else None,
        "hybrid_against_similarities": _paired(systems, labels) if labelled else None,
        "fallbacks": {**share(reasons.total(), len(judgements)), "by_reason": dict(reasons.most_common())},
        "overrides": {**share(against.overridden, against.chosen), "right": against.right.as_dict()},
        "swap_agreement": share(*agreement(systems["as_given"], systems["swapped"])) if swapped else None,
        "named_first": share(named_first, answered),
        "by_margin": [_part(part) for part in parts],
    }


def share(count: int, of: int) -> Entry:
    """A count as a share of something, with Wilson's 95 % interval; both None of nothing.

    >>> share(1, 4)["share"], share(0, 0)["share"]
    (0.25, None)
    """
    from narrlit.metrics.statistics import wilson_interval

    known = {"share": count / of, "interval": list(wilson_interval(count, of))} if of else {"share": None}
    return {"n": count, "of": of, **known}


def _systems(judgements: "Sequence[Judgement]") -> dict[str, "Choices"]:
    found: dict[str, Choices] = {
        "hybrid": [judgement.a_is_closer for judgement in judgements],
        "similarities": [judgement.nearer for judgement in judgements],
        "model": [judgement.verdict for judgement in judgements],
    }
    if len(judgements[0].answers) > 1:
        for place, name in enumerate(("as_given", "swapped")):
            found[name] = [judgement.answers[place].a_is_closer for judgement in judgements]
    return found


def _ties(judgements: "Sequence[Judgement]", labels: "Choices") -> int:
    known = [judgement for judgement, label in zip(judgements, labels, strict=True) if label is not None]
    return sum(judgement.margin == 0 for judgement in known)


def _accuracies(systems: dict[str, "Choices"], labels: "Choices", ties: int) -> Entry:
    from narrlit.metrics.judging import accuracy_of

    found = {name: accuracy_of(choices, labels) for name, choices in systems.items()}
    found["similarities"] = replace(found["similarities"], ties=ties)
    found["model_of_all"] = replace(found["model"], n=found["hybrid"].n)
    return {name: found[name].as_dict() for name in MEANINGS if name in found}


def _paired(systems: dict[str, "Choices"], labels: "Choices") -> Entry:
    wrong = {
        name: {place for place, label in enumerate(labels) if label is not None and systems[name][place] != label}
        for name in ("similarities", "hybrid")
    }
    return paired(wrong["hybrid"], wrong["similarities"], sum(label is not None for label in labels))


def _positions(judgements: "Sequence[Judgement]") -> tuple[int, int]:
    """How many answers named the candidate that was shown first, and how many named one."""
    shown_first = [
        answer.a_is_closer == (place == 0)
        for judgement in judgements
        for place, answer in enumerate(judgement.answers)
        if answer.a_is_closer is not None
    ]
    return sum(shown_first), len(shown_first)


def _part(part: "MarginPart") -> Entry:
    def told(found: "dict[str, AccuracySummary]") -> Entry:
        return {name: found[name].as_dict() for name in BY_MARGIN}

    return {
        "margin": [part.smallest, part.largest],
        "coverage": part.coverage,
        "within": told(part.within),
        "covered": told(part.covered),
    }


def table(found: Entry) -> str:
    """The report as Markdown."""
    lines = _of_accuracies(found) if found["accuracy"] else [f"{found['rows']} rows, none has a label."]
    lines += ["", *(f"- {line}" for line in _notes(found))]
    if found["by_margin"]:
        lines += ["", *_of_margins(found["by_margin"])]
    return "\n".join(lines) + "\n"


def _of_accuracies(found: Entry) -> list[str]:
    lines = ["| judge | n | accuracy |", "|---|---:|---|"]
    for name, entry in found["accuracy"].items():
        lines.append(row([MEANINGS[name], entry["n"], with_interval(entry) if entry["n"] else "none"]))
    return lines


def _notes(found: Entry) -> list[str]:
    fallbacks, against, swap = found["fallbacks"], found["overrides"], found["swap_agreement"]
    reasons = f": {counts(fallbacks['by_reason'])}" if fallbacks["n"] else ""
    notes = [f"Fallbacks to the similarities: {_told(fallbacks)} rows{reasons}."]
    line = f"Overrides, where the language model chose against the similarities: {_told(against)} rows with its choice"
    notes.append(f"{line}; right on {_right(against['right'])}.")
    if swap is not None:
        notes.append(f"A and B swapped: the same story chosen on {_told(swap)} rows that were answered both times.")
    notes.append(f"The candidate shown first was chosen in {_told(found['named_first'])} answers.")
    pair = found["hybrid_against_similarities"]
    if pair is not None:
        won = f"{pair['won']} rows won and {pair['lost']} lost"
        notes.append(
            f"Hybrid against the similarities: {pair['difference']:+.3f}, {won}, McNemar's {p_value(pair['p'])}."
        )
        notes.append("Intervals are Wilson's, 95 %; they take rows for independent.")
    return [*notes, _asked(found)]


def _asked(found: Entry) -> str:
    usage, prompt = found["usage"], found["prompt"]
    cost = "" if usage["cost"] is None else f", cost {usage['cost']:.4f}"
    return (
        f"Similarities by {found['model']}; {found['llm']['llm_model']} asked with the prompt {prompt['name']} "
        f"({prompt['digest'][:12]}): {usage['asked']} replies, {usage['from_log']} more from the log, "
        f"{usage['prompt_tokens']} and {usage['completion_tokens']} tokens{cost}."
    )


def _of_margins(parts: list[Entry]) -> list[str]:
    names = ["similarities", "language model", "hybrid"]
    lines = [
        row(["similarities apart by", *names, "all rows from there up", *names]),
        row(["---", *["---"] * 3, "---:", *["---"] * 3]),
    ]
    for part in parts:
        low, high = part["margin"]
        within, covered = ([_accuracy(part[kind][name]) for name in BY_MARGIN] for kind in ("within", "covered"))
        lines.append(row([f"{low:.4f} to {high:.4f}", *within, _percent(part["coverage"]), *covered]))
    return lines


def _told(found: Entry) -> str:
    return f"{found['n']} of {found['of']}" + (f" ({_percent(found['share'])})" if found["of"] else "")


def _right(found: Entry) -> str:
    return f"{with_interval(found)} ({found['correct']} of {found['n']})" if found["n"] else "none that has a label"


def _accuracy(found: Entry) -> str:
    return f"{found['accuracy']:.3f} ({found['correct']} of {found['n']})" if found["n"] else "none"


def _percent(value: Any) -> str:
    return f"{100 * value:.1f} %"
