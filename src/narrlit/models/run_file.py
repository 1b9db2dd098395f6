"""Fields of run.json and validation_answers.json, by which all readers and writers access them."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from narrlit.errors import ModelError
from narrlit.json_records import read_json

RECORD = "run.json"
ANSWERS = "validation_answers.json"
VERSION = 1
"""Version of run.json that this narrlit writes; records without a version are read as version 0."""
REMEDY = "name a checkpoint in another folder"


class NewerRecordError(ModelError):
    """A record is of a later version of narrlit."""


class Part(BaseModel):
    """Part of a record; fields that are not listed are kept as they are."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class Evaluation(Part):
    """Accuracy of one evaluation of the validation triples.

    Attributes:
        n: number of triples.
        correct: number of right answers.
        accuracy: from 0 to 1; None where a score was NaN.
        interval: ends of the 95 % confidence interval.
        ties: number of equal scores, which count as answers for B.
        undefined: number of triples with a score that is NaN.
        epoch: after which it was, from 0; None before training.
        step: after which it was.
    """

    n: int
    correct: int
    accuracy: float | None
    interval: list[float] | None = Field(min_length=2, max_length=2)
    ties: int = 0
    undefined: int = 0
    epoch: int | None = None
    step: int | None = None


class Comparison(Part):
    """Paired test of an evaluation with a reference on the same triples.

    Attributes:
        reference: frozen or untrained.
        difference: of the accuracies, that of the reference subtracted.
        lost: number of triples that only the reference has right.
        won: number of triples that only the evaluation has right.
        p: of the exact McNemar test.
    """

    reference: str | None = None
    difference: float
    lost: int
    won: int
    p: float


class DataFile(Part):
    """A file that was read, with its digest and its number of rows."""

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
    """Data of one stage, and how they were read.

    Attributes:
        files: that were read.
        storyworld: synthetic triples in place of files.
        pseudonyms: how names were replaced; None: they were not.
        fold: description of a fold of a cross-validation.
    """

    files: list[DataFile] = []
    storyworld: SyntheticTriples | None = None
    pseudonyms: PseudonymRecord | None = None
    fold: dict[str, Any] | None = None


class EncoderPart(Part):
    """Settings of the encoder."""

    model: str


class ModelPart(Part):
    """Settings of the objective, as its constructor takes them."""

    objective: str | None = None
    encoder: EncoderPart | None = None


class Flags(Part):
    """Flags of a run: conditions that its validation accuracy depends on."""

    trained_on_validation: bool = False
    transductive: bool = False
    mined_validation: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the flags that are set."""
        return [name for name in Flags.model_fields if getattr(self, name)]


class Command(Part):
    """The command line of the run."""

    line: str | None = None


class RecordHead(Part):
    """Fields that name the version of narrlit which wrote a record."""

    version: int = 0
    versions: dict[str, str] = {}


class RunFile(RecordHead):
    """Contents of a run.json.

    Attributes:
        version: of the record's fields.
        versions: of Python and of packages.
        status: running, finished, interrupted, failed, diverged or pruned; None where nothing was recorded.
        command: the command line.
        seed: of the run.
        model: settings of the objective.
        data: data that were read, by stage.
        data_check: checks of the data, as `narrlit.check_data` has them.
        flags: conditions that the accuracy depends on.
        checkpoints: paths of `best` and `last`, relative to the run.
        validations: every evaluation of the validation triples after training began.
        num_evaluations: their number.
        best: the evaluation of the best checkpoint.
        untrained: the model before training.
        frozen: the encoder without a new head, where the model has one.
        comparison: paired test of `best` with the frozen encoder.
    """

    status: str | None = None
    command: Command = Command()
    seed: int | None = None
    model: ModelPart = ModelPart()
    data: dict[str, DataPart] = {}
    data_check: dict[str, Any] | None = None
    flags: Flags = Flags()
    checkpoints: dict[str, str] = {}
    validations: list[Evaluation] = []
    num_evaluations: int | None = None
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
        head = read_json(path, RecordHead, "run record", REMEDY, ModelError)
        if head.version > VERSION:
            written_by = head.versions.get("narrlit", "a later version")
            raise NewerRecordError(
                f"run record {path}: narrlit {written_by} wrote it in version {head.version}, and this narrlit reads "
                f"versions up to {VERSION}: install that one (pip install -U narrlit)"
            )
        return read_json(path, cls, "run record", REMEDY, ModelError)

    @property
    def encoder(self) -> str | None:
        """Name of the model that was trained."""
        return None if self.model.encoder is None else self.model.encoder.model

    @property
    def reference(self) -> Evaluation | None:
        """The model before training, without its new head; None where the fit did not evaluate it."""
        return self.frozen or self.untrained

    def data_of(self, stage: str) -> DataPart:
        """Return the data of a stage; empty if the run did not read any."""
        return self.data.get(stage, DataPart())


class ValidationAnswers(Part):
    """Wrong answers of one evaluation: ascending positions of triples; None where a score was NaN."""

    epoch: int
    step: int
    wrong: list[int] | None


class AnswersFile(Part):
    """Contents of a validation_answers.json.

    Attributes:
        triples: digest of the validation triples.
        evaluations: wrong answers of every evaluation.
        untrained: wrong answers of the model before training.
        frozen: wrong answers of the encoder without a new head.
    """

    triples: str
    evaluations: list[ValidationAnswers]
    untrained: list[int] | None = None
    frozen: list[int] | None = None
