"""narrlit judge: a language model decides which candidate is closer, given an encoder's similarities."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from narrlit.console import say, say_truncated
from narrlit.data.readers import LABEL, read_triples
from narrlit.data.writers import write_rows
from narrlit.errors import OptionError
from narrlit.files import atomic_path, check_apart, check_writable
from narrlit.llm.client import LLMOptions
from narrlit.options import ModelOptions, StoryOptions, say_rows
from narrlit.preprocessing.pseudonyms import PseudonymOptions, Scope

if TYPE_CHECKING:
    from narrlit.llm.judge import Judgement

JSON, MARKDOWN, ROWS, CACHE = ".report.json", ".report.md", ".rows.jsonl", ".answers.sqlite"
"""Endings of the files beside the output."""

SHOWN = 10


def judge(  # noqa: PLR0913 - its parameters are the command's options
    triples: str,
    *,
    out: str,
    model: str,
    llm: LLMOptions,
    labels: str | None = None,
    swap: bool = False,
    prompt: str | None = None,
    views: str | None = None,
    missing_views: Literal["refuse", "positional"] = "refuse",
    fusion: str | None = None,
    pseudonymize: bool = False,
    scope: Scope = "story",
    pipeline: str = PseudonymOptions.pipeline,
    trust_remote_code: bool = False,
) -> int:
    """Let a language model decide each triple, given the stories and an encoder's similarities.

    A reply without a choice falls back to the similarities. OUT.report.json and OUT.report.md hold the figures,
    OUT.rows.jsonl every answer; the same command after an interruption resumes from OUT.answers.sqlite. Views and
    pseudonyms apply to the similarities; the language model reads the stories as they are in the file. Exit code 1:
    some requests failed.

    Args:
        triples: triples (JSON Lines or CSV), with or without labels.
        out: Track A answers (.jsonl), or a submission (.zip).
        model: encoder of the similarities: a folder, a run folder, a checkpoint, a hub id or minilm.
        llm: language model.
        labels: file of labels, where they are not in the triples' file.
        swap: judge twice, with A and B swapped; a choice counts only if it is the same story both times.
        prompt: file of your own prompt.
        views: file of stories' views, or several with commas between.
        missing_views: stories without views are refused, or get views cut by position.
        fusion: weights of text, theme, action and outcome, or a preset, as narrlit evaluate takes them.
        pseudonymize: replace names by placeholders, found by spaCy.
        scope: texts that share a mapping of names.
        pipeline: name or folder of the spaCy pipeline.
        trust_remote_code: run Python files that come with the model; only for models whose author you trust.
    """
    from narrlit.llm.client import LLM
    from narrlit.llm.judge import ScoredTriple, judge_triples
    from narrlit.models.embedding import score_triples
    from narrlit.prompts import load_prompt

    target = Path(out)
    beside = {ending: target.with_name(target.name + ending) for ending in (JSON, MARKDOWN, ROWS)}
    cache = Path(llm.answer_cache or target.with_name(target.name + CACHE))
    if target.suffix not in (".jsonl", ".zip"):
        raise OptionError(f"--out {target}: must end in .jsonl, or in .zip for a submission")
    written = {"--out": target} | {f"the file {path.name}": path for path in beside.values()}
    check_apart({**written, "--answer-cache": cache}, [triples, labels, prompt])
    for path in written.values():
        check_writable(path)
    use = ModelOptions(model=model, trust_remote_code=trust_remote_code)
    read = StoryOptions(views, missing_views, pseudonymize, scope, pipeline, fusion=fusion)
    instruction = load_prompt("judge", prompt)
    language_model = LLM(llm, cache)
    # The answers stand for the file's rows: none may be left out.
    rows = read_triples(triples, labels=labels, strict=True)
    say_rows(rows)
    encoder = read.encoder(use)
    scores, truncated = score_triples(encoder, read.triples(rows))
    say_truncated(truncated, encoder.max_length, *encoder.unit)
    scored = [ScoredTriple(each, (a, b)) for each, (a, b) in zip(rows.texts(), scores.tolist(), strict=True)]
    if swap:
        say(f"--swap: {2 * len(scored)} requests for {len(scored)} triples")
    judgements = judge_triples(language_model, scored, instruction, swap)
    answers = [judgement.a_is_closer for judgement in judgements]
    if target.suffix == ".jsonl":
        write_rows(target, ({LABEL: answer} for answer in answers))
    else:
        from narrlit.submission import write_submission

        write_submission(target, answers, None, rows_a=len(answers))
    record = {"file": triples, "model": model, **read.record(), "llm": llm.record()}
    record |= {"prompt": {"name": instruction.name, "digest": instruction.digest}}
    record |= {"usage": language_model.usage.as_dict()}
    _write_report(judgements, [triple.a_is_closer for triple in rows], record, beside)
    say(language_model.usage.summary())
    failed = {number: judgement for number, judgement in enumerate(judgements, 1) if judgement.failed}
    if failed:
        numbers = ", ".join(map(str, list(failed)[:SHOWN])) + (", ..." if len(failed) > SHOWN else "")
        reasons = Counter(str(judgement.fallback) for judgement in failed.values())
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        say(f"{len(failed)} of {len(judgements)} triples fell back ({numbers}): {counts}; the same command asks again")
    return int(bool(failed))


def _write_report(
    judgements: "Sequence[Judgement]", labels: Sequence[bool | None], record: dict[str, object], files: dict[str, Path]
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
    write_rows(files[ROWS], rows)
    report = judge_report(judgements, labels)
    table = judge_table(report)
    for ending, text in ((JSON, json.dumps({**record, **report}, indent=2) + "\n"), (MARKDOWN, table)):
        with atomic_path(files[ending]) as temporary:
            temporary.write_text(text, encoding="utf-8")
    print(table, end="")
