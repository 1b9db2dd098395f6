"""narrlit judge: a language model decides which candidate is closer, given an encoder's similarities."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.console import say, say_truncated
from narrlit.data.readers import read_triples
from narrlit.data.writers import write_rows
from narrlit.errors import ModelError, OptionError
from narrlit.files import atomic_path, check_apart, check_writable
from narrlit.llm.client import LLMOptions
from narrlit.options import ModelOptions, StoryOptions

if TYPE_CHECKING:
    from narrlit.data.records import Triple
    from narrlit.llm.judge import Judgement, ScoredTriple

JSON, MARKDOWN, ROWS, CACHE = ".report.json", ".report.md", ".rows.jsonl", ".answers.sqlite"
"""Endings of the files beside the output."""

LABEL = "text_a_is_closer"
SHOWN = 10


def judge(
    triples: str,
    *,
    out: str,
    use: ModelOptions,
    read: StoryOptions,
    llm: LLMOptions,
    labels: str | None = None,
    swap: bool = False,
    prompt: str | None = None,
) -> int:
    """Let a language model decide each triple, given the stories and an encoder's similarities.

    A reply without a choice falls back to the similarities. OUT.report.json and OUT.report.md hold the figures,
    OUT.rows.jsonl every answer; the same command after an interruption resumes from OUT.answers.sqlite. Views and
    pseudonyms apply to the similarities; the language model reads the stories as they are in the file. Exit code 1:
    some requests failed.

    Args:
        triples: triples (JSON Lines or CSV), with or without labels.
        out: Track A answers (.jsonl), or a submission (.zip).
        use: encoder of the similarities.
        read: views and pseudonyms.
        llm: language model.
        labels: file of labels, where they are not in the triples' file.
        swap: judge twice, with A and B swapped; a choice counts only if it is the same story both times.
        prompt: file of your own prompt.
    """
    from narrlit.llm.client import LLM
    from narrlit.llm.judge import judge_triples
    from narrlit.prompts import load_prompt

    target = Path(out)
    cache = Path(llm.answer_cache or target.with_name(target.name + CACHE))
    if use.model is None:
        raise OptionError("give --model M, the encoder of the similarities")
    if target.suffix not in (".jsonl", ".zip"):
        raise OptionError(f"--out {target}: must end in .jsonl, or in .zip for a submission")
    written = {
        "--out": target,
        **{f"the file {target.name}{end}": _beside(target, end) for end in (JSON, MARKDOWN, ROWS)},
    }
    check_apart({**written, "--answer-cache": cache}, [triples, labels, prompt])
    for path in written.values():
        check_writable(path)
    instruction = load_prompt("judge", prompt)
    model = LLM(llm, cache)
    # The answers stand for the file's rows: none may be left out.
    reading = read_triples(triples, labels=labels, strict=True)
    say(reading.summary())
    scored = _scored(use, read, reading.records)
    if swap:
        say(f"--swap: {2 * len(scored)} requests for {len(scored)} triples")
    judgements = judge_triples(model, scored, instruction, swap)
    _write_answers(target, judgements)
    _write_report(
        target,
        judgements,
        [triple.a_is_closer for triple in reading.records],
        {
            "file": triples,
            "model": use.model,
            **read.record(),
            "llm": llm.record(),
            "prompt": {"name": instruction.name, "digest": instruction.digest},
            "usage": {**asdict(model.usage), "failures": dict(model.usage.failures)},
        },
    )
    say(model.usage.summary())
    return _report_failures(judgements)


def _beside(target: Path, ending: str) -> Path:
    return target.with_name(target.name + ending)


def _scored(use: ModelOptions, read: StoryOptions, triples: "list[Triple]") -> "list[ScoredTriple]":
    from narrlit.llm.judge import ScoredTriple
    from narrlit.models.embedding import cosine_scores

    encoder = read.encoder(use)
    scores, truncated = cosine_scores(encoder, read.triples(triples))
    say_truncated(truncated, encoder.max_length, *encoder.pieces)
    for number, pair in enumerate(scores, 1):
        if not all(map(isfinite, pair)):
            raise ModelError(f"{use.model}: similarities of triple {number} are not numbers; use another checkpoint")
    return [ScoredTriple(triple.texts, pair) for triple, pair in zip(triples, scores, strict=True)]


def _write_answers(target: Path, judgements: "Sequence[Judgement]") -> None:
    answers = [judgement.a_is_closer for judgement in judgements]
    if target.suffix == ".jsonl":
        write_rows(target, ({LABEL: answer} for answer in answers))
        return
    from narrlit.submission import write_submission

    write_submission(target, answers, None, rows_a=len(answers))


def _write_report(
    target: Path, judgements: "Sequence[Judgement]", labels: Sequence[bool | None], record: dict[str, Any]
) -> None:
    from narrlit.llm.judge_report import judge_report, judge_table

    rows = (
        {
            "similarity_a": judgement.scores[0],
            "similarity_b": judgement.scores[1],
            "answers": [answer.a_is_closer for answer in judgement.answers],
            "fallback": judgement.fallback,
            LABEL: judgement.a_is_closer,
        }
        for judgement in judgements
    )
    write_rows(_beside(target, ROWS), rows)
    report = judge_report(judgements, labels)
    table = judge_table(report)
    for ending, text in ((JSON, json.dumps({**record, **report}, indent=2) + "\n"), (MARKDOWN, table)):
        with atomic_path(_beside(target, ending)) as temporary:
            temporary.write_text(text, encoding="utf-8")
    print(table, end="")


def _report_failures(judgements: "Sequence[Judgement]") -> int:
    """Print the triples whose requests failed; return the exit code."""
    failed = {number: judgement for number, judgement in enumerate(judgements, 1) if judgement.failed}
    if not failed:
        return 0
    numbers = ", ".join(map(str, list(failed)[:SHOWN])) + (", ..." if len(failed) > SHOWN else "")
    reasons = Counter(str(judgement.fallback) for judgement in failed.values())
    counted = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    say(f"{len(failed)} of {len(judgements)} triples fell back ({numbers}): {counted}; the same command asks again")
    return 1
