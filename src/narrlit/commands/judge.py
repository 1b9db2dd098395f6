"""narrlit judge: a language model that sees a model's similarities says which candidate is closer."""

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from narrlit.commands.devices import say, say_truncated
from narrlit.commands.reports import Entry, keep_report
from narrlit.data.layouts import LABEL
from narrlit.data.readers import read_triples
from narrlit.data.reading import counts
from narrlit.data.writers import write_rows
from narrlit.errors import ModelError, OptionError
from narrlit.files import check_apart, check_writable
from narrlit.llm.options import LLMOptions
from narrlit.options import ModelOptions

if TYPE_CHECKING:
    from narrlit.data.records import Triple
    from narrlit.llm.judge import Judgement, ScoredTriple

REPORT, ROWS, LOG = ".report", ".rows.jsonl", ".log.jsonl"
"""What is put behind the output's name."""

TOLD_ROWS = 10


def judge(
    triples: str,
    *,
    out: str,
    use: ModelOptions,
    ask: LLMOptions,
    labels: str | None = None,
    swap: bool = False,
    prompt: str | None = None,
    report: str | None = None,
) -> int:
    """Show a language model each triple with a model's similarities, and let it say which candidate is closer.

    A reply that is neither A nor B leaves the row to the similarities. The report is printed, and kept as
    OUT.report.json and OUT.report.md, each row's answers as OUT.rows.jsonl, all requests and replies in OUT.log.jsonl.
    The exit code is 1 where requests failed: the similarities have their rows, too; the same command asks them again.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and, where it is known, text_a_is_closer.
        out: file of Track A's answers; it ends in .jsonl, or in .zip for a submission.
        use: the model of the similarities.
        ask: the language model.
        labels: file of text_a_is_closer, where labels stand apart from stories.
        swap: ask twice, with A and B swapped, and take a choice only where it is the same story both times.
        prompt: file of a prompt of your own.
        report: folder of the report and the rows' answers; if not given they stand beside OUT.
    """
    from narrlit.llm.asking import Asker
    from narrlit.llm.judge import Judge
    from narrlit.prompts.prompt import load_prompt

    target = Path(out)
    beside = Path(report) if report is not None else target.parent
    log = Path(ask.log or target.with_name(target.name + LOG))
    _check(use, target, beside)
    check_apart({"--out": target, **_reports(target, beside), "--log": log}, [triples, labels, prompt])
    instruction = load_prompt("judge", prompt)
    asker = Asker(ask, log)
    # Answers stand for the file's rows: none may be left out.
    reading = read_triples(triples, labels=labels, strict=True)
    say(reading.summary())
    items = _scored(use, reading.records)
    if swap:
        say(f"--swap asks twice for each of {len(items)} rows: {2 * len(items)} requests")
    judgements = asker.run(items, Judge(instruction, ask.seed, swap), "triple")
    _write_answers(target, judgements)
    told = {"triples": triples, "model": use.model, "llm": ask.told(), "usage": asker.usage.as_dict()}
    told["prompt"] = {"name": instruction.name, "digest": instruction.digest}
    _write_report(beside, target.name, judgements, reading.records, told)
    return _tell_failures(judgements)


def _reports(target: Path, beside: Path) -> dict[str, Path]:
    """The files written beside the answers, by what messages call them."""
    endings = (f"{REPORT}.json", f"{REPORT}.md", ROWS)
    return {f"the report {target.name}{ending}": beside / f"{target.name}{ending}" for ending in endings}


def _check(use: ModelOptions, target: Path, beside: Path) -> None:
    if use.model is None:
        raise OptionError("give --model M, whose similarities the language model is shown")
    if target.suffix not in (".jsonl", ".zip"):
        raise OptionError(f"--out {target}: name a file that ends in .jsonl, or in .zip for a submission")
    for path in (target, *_reports(target, beside).values()):
        check_writable(path)


def _scored(use: ModelOptions, triples: "list[Triple]") -> "list[ScoredTriple]":
    """The triples with the model's similarities.

    Raises:
        ModelError: if one is no number.
    """
    from narrlit.llm.judge import ScoredTriple
    from narrlit.models.embedding import cosine_scores

    encoder = use.load()
    scores, cut = cosine_scores(encoder, triples)
    say_truncated(cut, encoder.max_length, *encoder.pieces)
    for number, pair in enumerate(scores, 1):
        if not all(map(isfinite, pair)):
            raise ModelError(f"{use.model}: its similarities for row {number} are no numbers; name another checkpoint")
    return [ScoredTriple(triple, pair) for triple, pair in zip(triples, scores, strict=True)]


def _write_answers(target: Path, judgements: "Sequence[Judgement]") -> None:
    answers = [judgement.a_is_closer for judgement in judgements]
    if target.suffix == ".jsonl":
        write_rows(target, ({LABEL: answer} for answer in answers))
        return
    from narrlit.submission import write_submission

    write_submission(target, answers, None, rows_a=len(answers))


def _write_report(
    folder: Path, name: str, judgements: "Sequence[Judgement]", triples: "Sequence[Triple]", told: Entry
) -> None:
    from narrlit.commands.judge_report import report, table

    write_rows(folder / f"{name}{ROWS}", map(_row, judgements))
    found = report(judgements, [triple.a_is_closer for triple in triples], told)
    text = table(found)
    keep_report(folder, f"{name}{REPORT}", found, text)
    print(text, end="")


def _row(judgement: "Judgement") -> Entry:
    a, b = judgement.scores
    answers = [answer.a_is_closer for answer in judgement.answers]
    told = {"similarity_a": a, "similarity_b": b, "answers": answers, "fallback": judgement.fallback}
    return {**told, LABEL: judgement.a_is_closer}


def _tell_failures(judgements: "Sequence[Judgement]") -> int:
    """Tell which rows had a request that failed, and why; the exit code."""
    failed = {number: judgement for number, judgement in enumerate(judgements, 1) if judgement.failed}
    if not failed:
        return 0
    rows = ", ".join(map(str, list(failed)[:TOLD_ROWS])) + (", ..." if len(failed) > TOLD_ROWS else "")
    reasons = Counter(str(judgement.fallback) for judgement in failed.values())
    say(
        f"left to the similarities: {len(failed)} of {len(judgements)} rows ({rows}): {counts(reasons)}; "
        "the same command asks for these again"
    )
    return 1
