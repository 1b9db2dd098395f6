"""Fields of run.json and validation_answers.json, for all code that reads or writes them."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from narrlit.errors import ModelError
from narrlit.json_records import read_json

RECORD = "run.json"
ANSWERS = "validation_answers.json"
VERSION = 1
"""Version of run.json that this release writes; records without a version are read as version 0."""
HIGHEST_ACCURACY = "highest validation/accuracy"
"""What selects the saved checkpoint by default; `selected_by` of older records."""


class NewerRecordError(ModelError):
    """Record that was written by a later version of narrlit."""


class Part(BaseModel):
    """Part of a record; unknown fields are kept unchanged."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class Evaluation(Part):
    """Accuracy of one evaluation of the validation triples.

    Attributes:
        n: number of triples.
        correct: number of correct answers.
        accuracy: from 0 to 1; None if a score was NaN.
        interval: ends of the 95 % confidence interval.
        ties: number of equal scores, which count as answer B.
        interval_method: `wilson`, or `by_story` if triples share stories; None if it was not recorded.
        undefined: number of triples with a score that is NaN.
        epoch: epoch after which the evaluation was made, from 0; None before training.
        step: step after which the evaluation was made.
    """

    n: int
    correct: int
    accuracy: float | None
    interval: list[float] | None = Field(min_length=2, max_length=2)
    ties: int = 0
    interval_method: Literal["wilson", "by_story"] | None = None
    undefined: int = 0
    epoch: int | None = None
    step: int | None = None


class Comparison(Part):
    """Paired test of an evaluation against a reference on the same triples.

    Attributes:
        reference: `frozen` or `untrained`.
        difference: accuracy of the evaluation minus that of the reference.
        lost: number of triples that only the reference answers correctly.
        won: number of triples that only the evaluation answers correctly.
        p: p-value of the test.
        test: exact McNemar test, or McNemar's test by story if triples share stories.
    """

    reference: str | None = None
    difference: float
    lost: int
    won: int
    p: float
    test: Literal["mcnemar", "mcnemar_by_story"] = "mcnemar"


class DataFile(Part):
    """Data file, with its digest and its number of rows."""

    path: str
    sha256: str
    rows: int | None = None


class SyntheticTriples(Part):
    """Triples of StoryWorld."""

    seed: int
    triples: int


class PseudonymRecord(Part):
    """Settings of pseudonymization."""

    backend: str
    scope: str


class DataPart(Part):
    """Data of one stage.

    Attributes:
        files: files that were read.
        storyworld: synthetic triples instead of files.
        pseudonyms: settings of pseudonymization; None: names were not replaced.
        fold: description of a cross-validation fold.
    """

    files: list[DataFile] = []
    storyworld: SyntheticTriples | None = None
    pseudonyms: PseudonymRecord | None = None
    fold: dict[str, Any] | None = None

    @property
    def paths_by_digest(self) -> dict[str, str]:
        """Paths of the files by their digests."""
        return {file.sha256: file.path for file in self.files}


class EncoderPart(Part):
    """Settings of the encoder."""

    model: str


class OptimizationPart(Part):
    """Settings of the optimizer."""

    learning_rate: float | None = None


class ModelPart(Part):
    """Settings of the objective, as in its constructor."""

    objective: str | None = None
    encoder: EncoderPart | None = None
    optimization: OptimizationPart = OptimizationPart()
    dimensions: list[int] | None = None


class TrainerPart(Part):
    """Settings of the trainer."""

    max_epochs: int | None = None
    accumulate_grad_batches: int | None = None
    precision: str | None = None


class LoadingPart(Part):
    """Settings of loading the data."""

    batch_size: int | None = None


class RunFlags(Part):
    """Flags of a run: circumstances that affect the meaning of its validation accuracy."""

    trained_on_validation: bool = False
    transductive: bool = False
    mined_validation: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the flags that are true."""
        return [name for name in RunFlags.model_fields if getattr(self, name)]


class CommandLine(Part):
    """Command line of the run."""

    line: str | None = None


class RecordHead(Part):
    """Versions of a record and of the packages that wrote it."""

    version: int = 0
    versions: dict[str, str] = {}


class RunFile(RecordHead):
    """Contents of a run.json.

    Attributes:
        version: version of the record's fields.
        versions: versions of Python and of packages.
        status: running, finished, interrupted, failed, diverged or pruned; None if it was not recorded.
        command: command line.
        seed: seed of the run.
        model: settings of the objective.
        trainer: settings of the trainer.
        loading: settings of loading the data.
        data: data by stage.
        data_check: result of `narrlit.check_data`.
        flags: circumstances that affect the meaning of the accuracy.
        checkpoints: paths of `best` and `last`, relative to the run.
        validations: evaluations of the validation triples after training began.
        num_evaluations: number of these evaluations.
        selected_by: what selected the saved checkpoint, such as `lowest train/loss`; `last`: nothing did.
        best: evaluation of the saved checkpoint, the best or, without one, the last.
        untrained: evaluation of the model before training.
        frozen: evaluation of the encoder without its new head, if the model has one.
        comparison: paired test of `best` against the frozen encoder.
    """

    status: str | None = None
    command: CommandLine = CommandLine()
    seed: int | None = None
    model: ModelPart = ModelPart()
    trainer: TrainerPart = TrainerPart()
    loading: LoadingPart = LoadingPart()
    data: dict[str, DataPart] = {}
    data_check: dict[str, Any] | None = None
    flags: RunFlags = RunFlags()
    checkpoints: dict[str, str] = {}
    validations: list[Evaluation] = []
    num_evaluations: int | None = None
    selected_by: str = HIGHEST_ACCURACY
    best: Evaluation | None = None
    untrained: Evaluation | None = None
    frozen: Evaluation | None = None
    comparison: Comparison | None = None

    @classmethod
    def read(cls, path: Path) -> "RunFile":
        """Read a run.json.

        Raises:
            NewerRecordError: if a later version of narrlit wrote it.
            ModelError: if it is damaged; the message names the first field that is wrong.

        >>> path = getfixture("tmp_path") / "run.json"
        >>> _ = path.write_text('{"status": "finished", "checkpoints": {"best": "checkpoints/best.ckpt"}}')
        >>> record = RunFile.read(path)
        >>> record.version, record.status, record.best
        (0, 'finished', None)
        """
        head = read_json(path, RecordHead, "broken_run_record", error=ModelError)
        if head.version > VERSION:
            written_by = head.versions.get("narrlit", "a later version")
            raise NewerRecordError("newer_record", path=path, narrlit=written_by, version=head.version, known=VERSION)
        return read_json(path, cls, "broken_run_record", error=ModelError)

    @property
    def encoder(self) -> str | None:
        """Name of the model that was trained."""
        return None if self.model.encoder is None else self.model.encoder.model

    @property
    def reference(self) -> Evaluation | None:
        """Evaluation of the model before training, without a new head; None if the fit did not evaluate it."""
        return self.frozen or self.untrained

    def data_of(self, stage: str) -> DataPart:
        """Return the data of a stage; empty if there are none."""
        return self.data.get(stage, DataPart())


class ValidationAnswers(Part):
    """Wrong answers of one evaluation, as ascending positions of triples; None if a score was NaN."""

    epoch: int
    step: int
    wrong: list[int] | None


class AnswersFile(Part):
    """Contents of a validation_answers.json.

    Attributes:
        triples: digest of the validation triples.
        stories: stories of each triple, by digests of their texts; None if they were not recorded.
        evaluations: wrong answers in each evaluation.
        untrained: wrong answers of the model before training.
        frozen: wrong answers of the encoder without its new head.
    """

    triples: str
    stories: list[list[int]] | None = None
    evaluations: list[ValidationAnswers]
    untrained: list[int] | None = None
    frozen: list[int] | None = None
