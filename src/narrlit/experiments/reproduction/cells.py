"""Computation of cells: systems without training, fits with one or more seeds, cross-validations, judging."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from narrlit.data.schema import FloatArray, Triples
from narrlit.data.splits import story_numbers
from narrlit.encoding.loading import open_encoder
from narrlit.encoding.options import CACHE, Loading
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.encoding.story_texts import StoryTexts, story_texts
from narrlit.errors import DataError, ModelError
from narrlit.experiments.fusion_weights import fused_scores
from narrlit.experiments.reproduction.backbones import model_name
from narrlit.experiments.reproduction.fits import RowFits
from narrlit.experiments.reproduction.inputs import ReproductionInputs
from narrlit.experiments.reproduction.record import RecordedCell
from narrlit.experiments.reproduction.tables import PaperRow, TableCell
from narrlit.experiments.run import Run
from narrlit.experiments.systems import SystemAnswers, answers_of, flags_of
from narrlit.llm.client import LLM
from narrlit.llm.judge import judge_triples, scored_triples
from narrlit.llm.options import LLMOptions
from narrlit.measures import open_measure
from narrlit.models.checkpoints import pseudonyms_of
from narrlit.models.config import parse_fusion
from narrlit.preprocessing.pseudonyms import PseudonymOptions
from narrlit.prompts import load_prompt
from narrlit.statistics.estimates import Estimate, estimate, estimate_count
from narrlit.statistics.significance import seed_spread

FIRST_SEED = 42
AS_TRAINED = Loading(long="truncate")


@dataclass(frozen=True)
class Computation:
    """Computation of the cells of a paper's tables.

    Attributes:
        inputs: files and encoders.
        parts: embeddings of texts and views, shared by all fusion weights, by model, triples and views.
    """

    inputs: ReproductionInputs
    parts: dict[tuple[str, ...], FloatArray] = field(default_factory=dict)

    @cached_property
    def fits(self) -> RowFits:
        """Fits of the rows."""
        return RowFits(self.inputs)

    def compute(self, cell: TableCell) -> RecordedCell:
        """Compute a cell.

        Raises:
            NarrlitError: if an input is missing, or a fit fails.
        """
        row = cell.row
        if row.unavailable is not None:
            raise DataError("row_not_computed", explanation=row.unavailable)
        if not row.needs_encoder:
            return self._result(cell)
        backbone = self.inputs.backbone(row)
        backbone.require()
        return self._result(cell).model_copy(update={"stand_in": backbone.stand_in})

    def _result(self, cell: TableCell) -> RecordedCell:
        """Compute a cell with an available encoder; for a trained row, the mean over the seeds."""
        if cell.split == "CV":
            return self.fits.cross_validate(cell.row)
        if cell.is_judged:
            self._require_judge()
        labeled = self.inputs.triples(cell.column)
        if cell.row.fit is None:
            return self._evaluated(cell, self.inputs.model(cell.row), labeled)
        seeds = range(FIRST_SEED, FIRST_SEED + self.inputs.record.seeds)
        return averaged([self._trained(cell, seed, labeled) for seed in seeds])

    def _require_judge(self) -> None:
        """Record the language model of a judged cell, unless it is the paper's; raise ModelError if there is none."""
        judge = model_name(self.inputs.tables.judge or "")
        model = os.environ.get("NARRLIT_LLM_MODEL")
        if model and model_name(model) != judge:
            self.inputs.record.stand_ins["judge"] = f"{model_name(model)} for {judge}"
        if not model:
            raise ModelError("judge_needed", judge=judge)

    def _trained(self, cell: TableCell, seed: int, labeled: Triples) -> RecordedCell:
        """Evaluate the fit of a row with a seed, or use the accuracy in the record of the fit."""
        run = str(self.fits.run(cell.row, seed))
        best = Run.read(run).record.best
        if best is not None and cell.is_of_the_fit:
            figures = best.model_dump(exclude_unset=True)
            return RecordedCell(system=run, **figures, flags=flags_of(run, None))
        return self._evaluated(cell, run, labeled)

    def _evaluated(self, cell: TableCell, model: str, labeled: Triples) -> RecordedCell:
        """Evaluate a model on triples."""
        answers = self.answers(cell.row, model, labeled)
        accuracy = self._judged(answers, labeled) if cell.is_judged else answers.estimate
        return RecordedCell(
            system=model,
            n=accuracy.n,
            correct=round(accuracy.value * accuracy.n),
            accuracy=accuracy.value,
            interval=[accuracy.low, accuracy.high],
            flags=answers.flags,
        )

    def answers(self, row: PaperRow, model: str, labeled: Triples) -> SystemAnswers:
        """Return the answers of a model to triples, which are read in the same way as in the fit of the row.

        Args:
            row: row of the model.
            model: a run, the name of a model, a baseline, or `meanmax:MODEL`.
            labeled: the triples.
        """
        texts = self._texts(row, model)
        if row.fusion is not None:
            return self._fused(row, model, texts, labeled)

        def load_encoder(name: str) -> StoryEncoder:
            return open_encoder(name, texts=texts, loading=AS_TRAINED, cache=CACHE)

        measure = open_measure(model, load_encoder, texts=texts)
        return answers_of(measure, labeled, name=model, progress=True)

    def _texts(self, row: PaperRow, model: str) -> StoryTexts:
        """Return which texts of a story are read: views, and pseudonyms if the fit of the row used them."""
        views = [str(path) for path in self.inputs.views(row)] if row.reads_views else None
        trained = None if row.fit is None else pseudonyms_of(model)
        if trained is None:
            return story_texts(views, "refuse", pseudonyms=False)
        settings = {**trained.model_dump(), "backend": "spacy"}
        return story_texts(views, "refuse", PseudonymOptions(**settings))

    def _fused(self, row: PaperRow, model: str, texts: StoryTexts, labeled: Triples) -> SystemAnswers:
        """Answer by fusion weights of text and views, which are embedded once for all weights."""
        fusion = parse_fusion(row.fusion or "")
        prepared = texts.prepare_triples(labeled)
        path = "" if labeled.report is None else str(labeled.report.path)
        key = (model, path, *map(str, self.inputs.views(row)))
        if key not in self.parts:
            encoder = open_encoder(model, texts=texts, loading=AS_TRAINED, fusion=fusion, cache=CACHE)
            self.parts[key], _ = encoder.embed_parts(prepared.stories)
        weights = np.array([fusion.weights])
        [scores] = fused_scores(self.parts[key], prepared.indices, weights)
        answers = SystemAnswers.scored(model, "model", labeled.labels == 1, scores, flags=flags_of(model, None))
        return replace(answers, stories=story_numbers(labeled))

    def _judged(self, answers: SystemAnswers, labeled: Triples) -> Estimate:
        """Let the language model in the environment decide, as `narrlit.judge` does."""
        scores: Any = answers.scores
        options = LLMOptions(temperature=self.inputs.tables.temperature)
        llm = LLM(options, self.inputs.folder / "judge.answers.sqlite")
        judgements = judge_triples(llm, scored_triples(labeled, scores), load_prompt("judge"))
        failed = sum(judgement.failed for judgement in judgements)
        if failed:
            raise ModelError("failed_requests", failed=failed, requests=len(judgements))
        decided = np.array([judgement.a_is_closer for judgement in judgements])
        return estimate(decided == answers.labels, answers.stories)


def averaged(results: Sequence[RecordedCell]) -> RecordedCell:
    """Average the results of several seeds; the interval is that of a single evaluation with the mean accuracy."""
    first = results[0]
    if len(results) == 1:
        return first
    n = first.n or 0
    accuracies = [result.accuracy for result in results if result.accuracy is not None]
    mean = deviation = interval = None
    if len(accuracies) == len(results):
        mean, deviation = seed_spread(accuracies)
        _, low, high, *_ = estimate_count(round(mean * n), n)
        interval = [low, high]
    flags: dict[str, bool | int | str] = {}
    for result in results:
        flags.update(result.flags)
    return RecordedCell(
        n=n,
        accuracy=mean,
        interval=interval,
        standard_deviation=deviation,
        flags=flags,
        seeds=list(results),
    )
