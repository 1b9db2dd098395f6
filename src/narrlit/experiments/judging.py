"""`narrlit.judge`: a language model decides labeled or unlabeled triples, given an encoder's similarities."""

from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.api import Model, encoder_of
from narrlit.cache.space import model_identity
from narrlit.console import say, say_truncated
from narrlit.data.readers import LABEL, read_triples, say_rows
from narrlit.data.schema import Triples
from narrlit.data.splits import story_numbers
from narrlit.data.writers import write_rows
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, OptionError
from narrlit.experiments.judge_report import JudgeFigures, accuracy_of
from narrlit.experiments.report import keep_report
from narrlit.files import check_continued
from narrlit.json_records import json_digest
from narrlit.llm.client import LLM, Usage
from narrlit.llm.judge import SAMPLING, Judgement, ScoredTriple, judge_triples
from narrlit.llm.options import LLMOptions
from narrlit.llm.requests import Sampling
from narrlit.metrics.significance import AccuracySummary
from narrlit.models.checkpoints import seen_in_training
from narrlit.models.config import DEFAULT_MODEL
from narrlit.prompts import Prompt, load_prompt
from narrlit.submission import write_submission

SUFFIXES = (".jsonl", ".zip")
REPORT, DETAILS, ANSWERS = ".report", ".rows.jsonl", ".answers.sqlite"
"""Suffixes of the files next to the answers: figures (.json and .md), one row per triple, the model's replies."""
SHOWN = 10
"""Maximum number of triples without a reply that are listed."""


@dataclass(frozen=True, eq=False)
class Judgements:
    """Decisions of a language model on N triples or, if it made no choice, of the similarities.

    Attributes:
        rows: judgement of each triple: cosines, replies, and the reason if the similarities decide.
        triples: triples as they are in their file.
        settings: settings that determine the judgements, and counts of requests, as plain data.
    """

    rows: list[Judgement]
    triples: Triples
    settings: dict[str, object]

    @property
    def answers(self) -> list[bool]:
        """Answers to the N triples: True if candidate A is closer."""
        return [judgement.a_is_closer for judgement in self.rows]

    @property
    def summary(self) -> AccuracySummary:
        """Accuracy on the triples with a label, with its interval."""
        return accuracy_of(self.answers, self._labels, story_numbers(self.triples))

    @property
    def accuracy(self) -> float:
        """Share of right answers, from 0 to 1; NaN if no triple has a label."""
        return self.summary.accuracy

    @cached_property
    def figures(self) -> JudgeFigures:
        """Accuracy of language model and similarities, alone and combined, fallbacks and overrides."""
        return JudgeFigures.of(self.rows, self._labels, story_numbers(self.triples))

    @property
    def failed(self) -> list[int]:
        """Numbers, from 1, of the triples with a request without a reply; repeat the call to send it again."""
        return [number for number, judgement in enumerate(self.rows, start=1) if judgement.failed]

    @property
    def failures(self) -> str:
        """Description of `failed` in one line; empty if every request got a reply."""
        if not self.failed:
            return ""
        numbers = list(map(str, self.failed[:SHOWN]))
        if len(self.failed) > SHOWN:
            numbers.append("...")
        reasons = Counter(str(judgement.fallback) for judgement in self.rows if judgement.failed)
        counts = [f"{count} {reason}" for reason, count in reasons.most_common()]
        return f"{len(self.failed)} of {len(self.rows)} triples fell back ({', '.join(numbers)}): {', '.join(counts)}"

    def table(self) -> pd.DataFrame:
        """Tabulate the triples: label, similarities, answers, the reason of a fallback, and the decision."""
        rows = []
        for number, (judgement, label) in enumerate(zip(self.rows, self._labels, strict=True), start=1):
            rows.append({"row": number, "label": label, **judgement.as_dict()})
        return pd.DataFrame(rows)

    def write(self, path: str | Path) -> None:
        """Write the answers (.jsonl, or .zip for a submission) and, next to them, figures and details.

        NAME.report.json and NAME.report.md contain the figures, NAME.rows.jsonl one row per triple.
        """
        target = Path(path)
        if target.suffix == ".zip":
            write_submission(target, self.answers, None, rows_a=len(self.rows))
        else:
            write_rows(target, [{LABEL: answer} for answer in self.answers])
        write_rows(_file_next_to(target, DETAILS), [judgement.as_dict() for judgement in self.rows])
        keep_report(target.parent, f"{target.name}{REPORT}", {**self.settings, **self.figures.as_dict()}, f"{self}\n")

    def __str__(self) -> str:
        """Format tables and notes in Markdown."""
        return str(self.figures).rstrip("\n")

    @property
    def _labels(self) -> list[bool | None]:
        return [triple.a_is_closer for triple in self.triples]


def judge(  # noqa: PLR0913 (options)
    triples: str | Path | Triples,
    encoder: Model = DEFAULT_MODEL,
    *,
    llm: LLMOptions,
    out: str | Path,
    labels: str | Path | None = None,
    swap: bool = False,
    prompt: str | Path | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Judgements:
    """Let a language model decide each triple, given the stories and an encoder's similarities.

    If a reply contains no choice, the similarities decide. Repeat the call to resume from the replies in
    OUT.answers.sqlite; failed requests are sent again, and so are those with unusable replies. Views and pseudonyms
    apply to the similarities only; the language model reads the stories as they are in the file.

    Args:
        triples: a file of triples (JSON Lines or CSV), with or without labels, or triples.
        encoder: encoder that computes the similarities: from `narrlit.load`, or the name of a model.
        llm: the language model.
        out: file of answers (.jsonl) or submission to Track A (.zip) to write; `Judgements.write` describes the files
            next to it.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        swap: judge each triple twice, with A and B swapped; a choice counts only if both replies choose the same story.
        prompt: file with a custom prompt: the user message if it has fields such as {anchor_text}, else the system
            message.
        overwrite: replace the files of a call with other settings.
        progress: print how files were read, and show progress bars, on stderr.

    Returns:
        The `Judgements`: `.answers`, `.summary`, `.table()`, `.failed`. They are printed as tables.

    Raises:
        DataError: if a row of the triples is invalid.
        ModelError: if the encoder can't be loaded, or the server refuses the first request.
        OptionError: if `out` was made with other settings, or no server or model is named.
    """
    target = Path(out)
    if target.suffix not in SUFFIXES:
        raise OptionError(f"{target}: must end in .jsonl, or in .zip for a submission")
    rows = _read(triples, labels, progress)
    fitted = encoder_of(encoder).fitted_for(rows.stories)
    job = JudgeJob(rows, fitted, llm, prompt, swap)
    report = _file_next_to(target, f"{REPORT}.json")
    files = [target, report, _file_next_to(target, f"{REPORT}.md"), _file_next_to(target, DETAILS)]
    check_continued(files, report, job.digest, overwrite)
    model = LLM(llm, _file_next_to(target, ANSWERS), progress)
    if job.seen_in_training is not None:
        say(f"warning: {fitted.name} was {job.seen_in_training}")
    scored = job.score(progress)
    if swap and progress:
        say(f"A and B swapped: {2 * len(scored)} requests for {len(scored)} triples")
    judgements = judge_triples(model, scored, job.instruction, swap)
    result = Judgements(judgements, rows, job.record(model.usage))
    result.write(target)
    if progress:
        say(model.usage.summary())
    return result


@dataclass(frozen=True, eq=False)
class JudgeJob:
    """Everything that determines the judgements of N triples."""

    triples: Triples
    encoder: StoryEncoder
    llm: LLMOptions
    prompt: str | Path | None
    swap: bool

    @cached_property
    def instruction(self) -> Prompt:
        """Prompt, read from its file."""
        return load_prompt("judge", None if self.prompt is None else str(self.prompt))

    @property
    def sampling(self) -> Sampling:
        """Sampling parameters of the requests."""
        return SAMPLING.with_options(self.llm)

    @cached_property
    def digest(self) -> str:
        """Digest of the job; a call with the same digest resumes an earlier one."""
        texts = self.triples.texts()
        model = [self.llm.endpoint().model, self.llm.seed, asdict(self.sampling)]
        return json_digest([texts, self._encoder_record, model, self.instruction.digest, self.swap])

    @property
    def _encoder_record(self) -> dict[str, object]:
        """Everything that determines the similarities, with a digest of the model's files or its commit in the hub."""
        record = self.encoder.record
        if record["files"] is None:  # a model of the hub that is not downloaded yet
            _ = self.encoder.module
            _, record["files"] = model_identity(self.encoder.name)
        return record

    @cached_property
    def seen_in_training(self) -> str | None:
        """Reason why the encoder's accuracy on the triples is not a valid result; None if there is none."""
        if self.triples.report is None:
            return None
        return seen_in_training(self.encoder.name, self.triples.report.path)

    def score(self, progress: bool) -> list[ScoredTriple]:
        """Compute the similarities."""
        scores = self.encoder.score(self.triples, progress=progress)
        if progress:
            say_truncated(self.encoder.coverage, self.encoder.facts.max_length, *self.encoder.facts.unit)
        return scored_triples(self.triples, scores)

    def record(self, usage: Usage) -> dict[str, object]:
        """Return plain data for the report, with counts of requests."""
        report = self.triples.report
        record = {
            "settings": self.digest,
            "file": None if report is None else str(report.path),
            "model": self.encoder.name,
            **self.encoder.about,
            "llm": self.llm.record(),
            "sampling": asdict(self.sampling),
            "usage": usage.as_dict(),
            "prompt": {
                "file": None if self.prompt is None else str(self.prompt),
                "name": self.instruction.name,
                "digest": self.instruction.digest,
            },
            "long": self.encoder.loading.long,
            **self.encoder.coverage.record,
        }
        if self.seen_in_training is not None:
            record["seen_in_training"] = self.seen_in_training
        return record


def scored_triples(triples: Triples, scores: NDArray[np.float64]) -> list[ScoredTriple]:
    """Combine the texts of N triples with their cosines (N, 2)."""
    scored = []
    for texts, (a, b) in zip(triples.texts(), scores.tolist(), strict=True):
        scored.append(ScoredTriple(texts, (a, b)))
    return scored


def _read(triples: str | Path | Triples, labels: str | Path | None, progress: bool) -> Triples:
    """Read triples; no row may be dropped, because each row of the file needs an answer."""
    if isinstance(triples, Triples):
        if labels is not None:
            raise OptionError("`labels` need a file of triples; give them to read_triples instead")
        if not triples:
            raise DataError("there are no triples: give at least one")
        return triples
    rows = read_triples(triples, labels=labels, strict=True)
    if progress:
        say_rows(rows)
    return rows


def _file_next_to(target: Path, suffix: str) -> Path:
    """Return the path of a file next to the answers."""
    return target.with_name(f"{target.name}{suffix}")
