"""`narrlit.judge`: a language model decides labeled or unlabeled triples, given an encoder's similarities."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from narrlit.api import EncoderLike, encoder_of
from narrlit.console import say, say_truncated
from narrlit.data.readers import LABEL_COLUMN, read_triples, say_rows
from narrlit.data.schema import Triples
from narrlit.data.splits import story_numbers
from narrlit.data.writers import write_rows
from narrlit.embedding_cache.space import model_identity
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, OptionError
from narrlit.files import check_continued, write_text
from narrlit.json_records import json_digest
from narrlit.llm.client import LLM, LLMUsage
from narrlit.llm.judge import SAMPLING, Judgement, ScoredTriple, judge_triples, scored_triples
from narrlit.llm.options import LLMOptions
from narrlit.llm.requests import Sampling
from narrlit.models.checkpoints import seen_in_training
from narrlit.models.config import DEFAULT_MODEL
from narrlit.prompts import Prompt, load_prompt
from narrlit.results import Estimate, Note, Result, Row, difference, estimate
from narrlit.submission import write_submission

SUFFIXES = (".jsonl", ".zip")
REPORT, DETAILS, ANSWERS = ".report", ".rows.jsonl", ".answers.sqlite"
"""Suffixes of the files next to the answers: figures (.json and .md), one row per triple, the model's replies."""
SHOWN = 10
"""Maximum number of triples without a reply that are listed."""
HYBRID, SIMILARITIES, BY_LLM = "hybrid", "similarities", "llm"
COMPARED = [SIMILARITIES, BY_LLM, HYBRID]
"""Systems with accuracies by label, choice and margin."""
ORDERS = {"as_given": True, "swapped": False}
"""Answers by the order of A and B in the request; True if A is shown first."""
MARGIN_PARTS = 5
"""Number of parts of equal size by the difference of the similarities."""


@dataclass(frozen=True, eq=False)
class Judgements(Result):
    """Result of `judge`: decisions of a language model on N triples or, if it made no choice, of the similarities.

    The systems are `hybrid` (the decisions), `similarities`, `llm` (on the triples with a choice), `llm_of_all` (no
    choice counts as wrong) and, if A and B were swapped, `as_given` and `swapped`. `answers` has a row for each triple.

    Attributes:
        rows: judgement of each triple: cosines, replies, and the reason if the similarities decide.
    """

    rows: list[Judgement]

    @property
    def failed(self) -> list[int]:
        """Numbers, from 1, of the triples with a request without a reply; repeat the call to send it again."""
        return [number for number, judgement in enumerate(self.rows, start=1) if judgement.failed]

    @property
    def incomplete(self) -> bool:
        """True if a request failed."""
        return bool(self.failed)

    @property
    def failures(self) -> str:
        """Description of `failed` in one line; empty if every request got a reply."""
        if not self.failed:
            return ""
        numbers = list(map(str, self.failed[:SHOWN]))
        if len(self.failed) > SHOWN:
            numbers.append("...")
        reasons = _reasons([judgement for judgement in self.rows if judgement.failed])
        return f"{len(self.failed)} of {len(self.rows)} triples fell back ({', '.join(numbers)}): {', '.join(reasons)}"

    def write_answers(self, path: str | Path) -> None:
        """Write the answers (.jsonl, or .zip for a submission) and, next to them, figures and details.

        NAME.report.json and NAME.report.md contain the figures, NAME.rows.jsonl one row per triple.
        """
        target = Path(path)
        answers = [judgement.a_is_closer for judgement in self.rows]
        if target.suffix == ".zip":
            write_submission(target, answers, None, rows_a=len(answers))
        else:
            write_rows(target, [{LABEL_COLUMN: answer} for answer in answers])
        write_rows(_file_next_to(target, DETAILS), [judgement.as_dict() for judgement in self.rows])
        report = json.dumps(self.record, indent=2, allow_nan=False)
        write_text(_file_next_to(target, f"{REPORT}.json"), f"{report}\n")
        write_text(_file_next_to(target, f"{REPORT}.md"), f"{self}\n")


def judge(  # noqa: PLR0913 (options)
    triples: str | Path | Triples,
    encoder: EncoderLike = DEFAULT_MODEL,
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
        out: file of answers (.jsonl) or submission to Track A (.zip) to write; `Judgements.write_answers` describes
            the files next to it.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        swap: judge each triple twice, with A and B swapped; a choice counts only if both replies choose the same story.
        prompt: file with a custom prompt: the user message if it has fields such as {anchor_text}, else the system
            message.
        overwrite: replace the files of a call with other settings.
        progress: print how files were read, and show progress bars, on stderr.

    Returns:
        The `Judgements`, a `Result` whose first figure, `.estimate()`, is the accuracy of the decisions; with `.rows`,
        `.failed` and `.write_answers(path)`. Triples without labels have shares, but no accuracies.

    Raises:
        DataError: if a row of the triples is invalid.
        ModelError: if the encoder can't be loaded, or the server refuses the first request.
        OptionError: if `out` was made with other settings, or no server or model is named.
    """
    target = Path(out)
    if target.suffix not in SUFFIXES:
        raise OptionError("suffix_of_judgements", path=target)
    read = _read(triples, labels, progress)
    fitted = encoder_of(encoder).fitted_for(read.stories)
    job = JudgeJob(read, fitted, llm, prompt, swap)
    report = _file_next_to(target, f"{REPORT}.json")
    files = [target, report, _file_next_to(target, f"{REPORT}.md"), _file_next_to(target, DETAILS)]
    check_continued(files, report, job.digest, overwrite)
    server = LLM(llm, _file_next_to(target, ANSWERS), progress)
    if job.seen_in_training is not None:
        say(f"warning: {fitted.name} was {job.seen_in_training}")
    scored = job.score(progress)
    if swap and progress:
        say(f"A and B swapped: {2 * len(scored)} requests for {len(scored)} triples")
    judgements = judge_triples(server, scored, job.instruction, swap)
    result = judgements_of(judgements, read, job.record(server.usage))
    result.write_answers(target)
    if progress:
        say(server.usage.summary())
        if result.failed:
            say(f"{result.failures}; repeat the command to retry them")
    return result


def judgements_of(judgements: list[Judgement], triples: Triples, settings: Mapping[str, object]) -> Judgements:
    """Compute the figures of N judgements: accuracies, on triples with a label and a choice, and shares.

    The accuracies are those of all triples, by label, by the model's `choice` (agrees with the similarities, overrides
    them, none) and by `margin`, the difference of the similarities, in parts of equal size. The shares are of triples
    or answers: fallbacks to the similarities, choices that override them, choices of the candidate shown first, and
    equal choices if A and B are swapped.

    Source: Comhis, section 6.3, for errors by label.
    """
    choices = _choices(judgements, triples)
    labeled = choices.dropna(subset=["label"])
    stories = story_numbers(triples)

    def share(values: pd.Series) -> Estimate:
        return estimate(values, stories[values.index])

    def accuracy(system: str, part: pd.DataFrame) -> Estimate:
        known = part.dropna(subset=[system])
        return share(known[system] == known["label"])

    figures, differences = [], []
    if len(labeled):
        ties = int((labeled["margin"] == 0).sum())
        figures.append(accuracy(HYBRID, labeled).row(HYBRID))
        figures.append(accuracy(SIMILARITIES, labeled).row(SIMILARITIES, ties=ties))
        figures.append(accuracy(BY_LLM, labeled).row(BY_LLM))
        figures.append(share(labeled[BY_LLM] == labeled["label"]).row("llm_of_all"))
        if "swapped" in choices:
            figures += [accuracy(order, labeled).row(order) for order in ORDERS]
        right = {system: labeled[system] == labeled["label"] for system in COMPARED}
        compared = difference(right[HYBRID], right[SIMILARITIES], stories[labeled.index])
        differences.append(compared.row(HYBRID, SIMILARITIES))
        for facet, names in _facets(labeled).items():
            for name, part in labeled.groupby(names):
                figures += [accuracy(system, part).row(system, subset=f"{facet}: {name}") for system in COMPARED]

    chosen = choices.dropna(subset=[BY_LLM])
    shown_first = [choices[order].dropna() == first for order, first in ORDERS.items() if order in choices]
    shares = {
        "fallbacks": choices[BY_LLM].isna(),
        "overrides": chosen[BY_LLM] != chosen[SIMILARITIES],
        "shown first": pd.concat(shown_first),
    }
    if "swapped" in choices:
        both = choices.dropna(subset=[*ORDERS])
        shares["same if swapped"] = both["as_given"] == both["swapped"]
    figures += [share(values).row(BY_LLM, name, subset="shares") for name, values in shares.items()]

    notes = [Note.of("judge_systems")] if len(labeled) else [Note.of("unlabeled", n=len(judgements))]
    fallbacks = _reasons([judgement for judgement in judgements if judgement.fallback])
    if fallbacks:
        notes.append(Note.of("fallbacks", reasons=fallbacks))
    if "seen_in_training" in settings:
        notes.append(Note.of("seen_in_training", system=SIMILARITIES, reason=settings["seen_in_training"]))
    settings = {**settings, "triples": len(choices), "labeled": len(labeled)}
    return Judgements.of(
        "judge", figures, differences, answers=choices, settings=settings, notes=notes, rows=judgements
    )


def _choices(judgements: Sequence[Judgement], triples: Triples) -> pd.DataFrame:
    """Tabulate N triples: label, similarities, and the choice of each system, True for A, None if there is none."""
    table: list[Row] = []
    for judgement, triple in zip(judgements, triples, strict=True):
        similarity_a, similarity_b = judgement.scores
        orders = zip(ORDERS, judgement.answers, strict=False)  # there is a second answer if A and B were swapped
        row = {
            "row": len(table) + 1,
            "label": triple.a_is_closer,
            "similarity_a": similarity_a,
            "similarity_b": similarity_b,
            "margin": abs(similarity_a - similarity_b),
            HYBRID: judgement.a_is_closer,
            SIMILARITIES: judgement.by_similarity,
            BY_LLM: judgement.choice,
            **{order: answer.a_is_closer for order, answer in orders},
            "fallback": judgement.fallback,
        }
        table.append(row)
    return pd.DataFrame(table)


def _facets(labeled: pd.DataFrame) -> dict[str, "pd.Series[str]"]:
    """Name the part of each labeled triple, by label, by the model's choice, and by the difference of similarities."""
    ranks = labeled["margin"].rank(method="first", ascending=False).astype(int)
    parts = labeled["margin"].groupby((ranks * MARGIN_PARTS - 1) // len(labeled))
    ends = [parts.transform(end).map("{:.4f}".format) for end in ("min", "max")]
    overrides = (labeled[BY_LLM] != labeled[SIMILARITIES]).map({True: "overrides", False: "agrees"})
    return {
        "label": labeled["label"].map({True: "A", False: "B"}),
        "choice": overrides.where(labeled[BY_LLM].notna(), "none"),
        "margin": ends[0] + " to " + ends[1],
    }


def _reasons(judgements: Sequence[Judgement]) -> list[str]:
    """Count the reasons of fallbacks, most frequent first."""
    reasons = Counter(str(judgement.fallback) for judgement in judgements)
    return [f"{count} {reason}" for reason, count in reasons.most_common()]


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

    def record(self, usage: LLMUsage) -> dict[str, object]:
        """Return plain data for the report, with counts of requests."""
        report = self.triples.report
        record = {
            "digest": self.digest,
            "file": None if report is None else str(report.path),
            "encoder": self.encoder.name,
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


def _read(triples: str | Path | Triples, labels: str | Path | None, progress: bool) -> Triples:
    """Read triples; no row may be dropped, because each row of the file needs an answer."""
    if isinstance(triples, Triples):
        if labels is not None:
            raise OptionError("labels_of_read_triples")
        if not triples:
            raise DataError("no_triples", name="the triples")
        return triples
    rows = read_triples(triples, labels=labels, strict=True)
    if progress:
        say_rows(rows)
    return rows


def _file_next_to(target: Path, suffix: str) -> Path:
    """Return the path of a file next to the answers."""
    return target.with_name(f"{target.name}{suffix}")
