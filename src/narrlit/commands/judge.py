"""narrlit judge: a language model decides which candidate is closer, given an encoder's similarities."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from narrlit.console import say, say_truncated
from narrlit.data.readers import LABEL, read_triples, say_rows
from narrlit.data.rows import file_digest
from narrlit.data.writers import write_rows
from narrlit.errors import OptionError
from narrlit.files import Output, OutputOptions, check_free, check_writable, made_with
from narrlit.llm.client import LLMOptions
from narrlit.options import ModelOptions, StoryOptions, seen_in_training

if TYPE_CHECKING:
    from narrlit.llm.judge import Judgement

SHOWN = 10
REPORTS = ("{path}.report.json", "{path}.report.md", "{path}.rows.jsonl", "{path}.answers.sqlite")
"""Files beside the answers."""


def judge(  # noqa: PLR0913 (options)
    triples: str,
    *,
    out: Annotated[str, Output("{path}", *REPORTS, continued=True)],
    output_options: OutputOptions,
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
        output_options: whether answers of other settings are replaced.
        use: the encoder of the similarities.
        read: what it reads of a story.
        llm: language model.
        labels: file of labels, where they are not in the triples' file.
        swap: judge twice, with A and B swapped; a choice counts only if it is the same story both times.
        prompt: file of your own prompt: the system message or, with fields such as {anchor_text}, the user message.
    """
    from narrlit.experiments.judge_report import judge_report, judge_table
    from narrlit.experiments.report import keep_report
    from narrlit.llm.client import LLM
    from narrlit.llm.judge import SAMPLING, ScoredTriple, judge_triples
    from narrlit.prompts import load_prompt

    target = Path(out)
    *reports, details = (target.with_name(f"{target.name}.{end}") for end in ("report.json", "report.md", "rows.jsonl"))
    cache = Path(llm.answer_cache or target.with_name(f"{target.name}.answers.sqlite"))
    if target.suffix not in (".jsonl", ".zip"):
        raise OptionError(f"--out {target}: must end in .jsonl, or in .zip for a submission")
    if use.model is None:
        raise OptionError("give --model M, the encoder of the similarities")
    instruction = load_prompt("judge", prompt)
    sampling = asdict(SAMPLING.with_options(llm))
    encoder_settings = [use.model, use.long, use.max_length, use.precision, asdict(read)]
    model_settings = [llm.endpoint().model, llm.seed, sampling, instruction.digest, swap]
    settings = _digest([file_digest(triples), *encoder_settings, *model_settings])
    _check_earlier((target, *reports, details), reports[0], settings, output_options)
    language_model = LLM(llm, cache)
    # The answers stand for the file's rows: none may be left out.
    rows = read_triples(triples, labels=labels, strict=True)
    say_rows(rows)
    encoder = read.load(use.model, use).fitted_for(rows.stories)
    if seen := seen_in_training(use.model, file_digest(triples)):
        say(f"warning: {use.model} was {seen}")
    scores = encoder.score(rows, progress=True)
    coverage = encoder.coverage
    say_truncated(coverage, encoder.facts.max_length, *encoder.facts.unit)
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
    record = {"settings": settings, "file": triples, "model": use.model, **encoder.about, "llm": llm.record()}
    record |= {"sampling": sampling, "usage": language_model.usage.as_dict()}
    record |= {"prompt": {"file": prompt, "name": instruction.name, "digest": instruction.digest}}
    record |= {"long": use.long, **coverage.record}
    record |= {} if seen is None else {"seen_in_training": seen}
    write_rows(details, (judgement.as_dict() for judgement in judgements))
    report = judge_report(judgements, [triple.a_is_closer for triple in rows])
    table = judge_table(report)
    keep_report(target.parent, f"{target.name}.report", {**record, **report}, table)
    print(table, end="")
    say(language_model.usage.summary())
    return _say_failed(judgements)


def _digest(settings: list[Any]) -> str:
    """Compute the SHA-256, in hex, of plain data."""
    return sha256(json.dumps(settings).encode()).hexdigest()


def _check_earlier(files: Sequence[Path], report: Path, settings: str, options: OutputOptions) -> None:
    """Refuse to replace the files of an earlier run, unless its settings were the same: that one is continued."""
    for path in files:
        check_writable(path)
    if not made_with(report, settings):
        check_free(files, options.overwrite, ", made with other settings")


def _say_failed(judgements: "Sequence[Judgement]") -> int:
    """Print which triples got no reply; return the exit code."""
    failed = {number: judgement for number, judgement in enumerate(judgements, 1) if judgement.failed}
    if failed:
        numbers = ", ".join(map(str, list(failed)[:SHOWN])) + (", ..." if len(failed) > SHOWN else "")
        reasons = Counter(str(judgement.fallback) for judgement in failed.values())
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        say(f"{len(failed)} of {len(judgements)} triples fell back ({numbers}): {counts}; the same command asks again")
    return int(bool(failed))
