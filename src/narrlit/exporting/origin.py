"""Origin of an exported model: its base model, license, training and accuracy, as far as they are recorded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from huggingface_hub import metadata_load, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # documented, not in `__all__`
from pydantic import BaseModel, ConfigDict

from narrlit.json_records import read_json
from narrlit.models.checkpoints import find_checkpoint, find_record
from narrlit.models.packaged import ADAPTED, model_folder
from narrlit.models.run_file import DataPart, Evaluation, RunFile

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""Hub id of the model `minilm`."""
CARD = "README.md"
AVERAGE = "average.json"
TAG = "narrative-similarity"
"""Tag of models that were trained on stories."""
STORYWORLD = "StoryWorld"
LICENSE_FIELDS = ("license", "license_name", "license_link")


class AverageFile(BaseModel):
    """Contents of the average.json of a folder with averaged weights.

    Attributes:
        models: models that were averaged.
        trained_share: interpolation between the weights before training (0) and the mean of the trained weights (1), or
            the share of each training.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    models: list[str]
    trained_share: float | list[float]

    @property
    def what(self) -> str:
        """Say how the trainings were averaged, or added up."""
        count = len(self.models)
        if isinstance(self.trained_share, float):
            return f"mean of {count}, trained share {self.trained_share:g}"
        return f"sum of {count}, trained shares {', '.join(format(share, 'g') for share in self.trained_share)}"


@dataclass(frozen=True)
class Origin:
    """Recorded facts about a model, for its card; empty or None if unknown.

    Attributes:
        trained: the model was trained on stories.
        base_model: hub ids of the model before training.
        license: fields of the license in the card of the model or of its base model.
        language: codes of the languages in this card.
        run: record of the training.
        evaluation: accuracy of these weights on the validation triples.
        average: settings of the average, if the weights are one.
    """

    trained: bool
    base_model: tuple[str, ...] = ()
    license: Mapping[str, str] | None = None
    language: tuple[str, ...] = ()
    run: RunFile | None = None
    evaluation: Evaluation | None = None
    average: AverageFile | None = None

    @classmethod
    def of(cls, source: str, base: str) -> "Origin":
        """Collect the facts about a model.

        Args:
            source: name of the model: a run, a checkpoint, a folder, a hub id, `narrlit-mini` or `minilm`.
            base: name of the model before training; for a model that was not trained here, the same model.

        Raises:
            ModelError: if a record is damaged.
        """
        checkpoint = find_checkpoint(source)
        own_card = {} if checkpoint is not None else _read_card(source)
        base_card = _read_card(base)
        folder = None if checkpoint is not None else model_folder(source)
        has_weights_only = folder is not None and (folder / ADAPTED).is_file()
        run, evaluation = (None, None) if checkpoint is None else _read_run(checkpoint)
        return cls(
            trained=checkpoint is not None or has_weights_only or TAG in _strings(own_card.get("tags")),
            base_model=_base_model(base, {**base_card, **own_card}),
            license=_license(own_card) or _license(base_card),
            language=_languages(own_card) or _languages(base_card),
            run=run,
            evaluation=evaluation,
            average=_read_average(folder),
        )

    @property
    def training_data(self) -> tuple[str, ...]:
        """Names of the training data, without folders."""
        return () if self.run is None else names_of(self.run.data_of("train"))

    @property
    def validation_data(self) -> tuple[str, ...]:
        """Names of the validation data, without folders."""
        return () if self.run is None else names_of(self.run.data_of("validation"))


def names_of(data: DataPart) -> tuple[str, ...]:
    """List the names of data files without their folders, and StoryWorld for synthetic triples."""
    names = [file_name(file.path) for file in data.files]
    if data.storyworld is not None:
        names.append(STORYWORLD)
    return tuple(names)


def file_name(path: str) -> str:
    r"""Return the name of a file without its folders, on any system.

    >>> file_name("/home/ann/train.jsonl"), file_name("C:\\ann\\train.jsonl")
    ('train.jsonl', 'train.jsonl')
    """
    return re.split(r"[/\\]", path)[-1]


def _read_run(checkpoint: Path) -> tuple[RunFile | None, Evaluation | None]:
    """Read the record of a checkpoint's run and, if the run recommends this checkpoint, its evaluation."""
    path = find_record(str(checkpoint))
    if path is None:
        return None, None
    run = RunFile.read(path)
    recommended = run.checkpoints.get("best", run.checkpoints.get("last"))
    is_recommended = recommended is not None and (path.parent / recommended).resolve() == checkpoint.resolve()
    return run, run.best if is_recommended else None


def _read_average(folder: Path | None) -> AverageFile | None:
    """Read the record of an average of weights; None if the folder is no average."""
    if folder is None or not (folder / AVERAGE).is_file():
        return None
    return read_json(folder / AVERAGE, AverageFile, "broken_average_record")


def _read_card(model: str) -> Mapping[str, object]:
    """Read the metadata of a model's card; empty if there is none, or it is not valid YAML."""
    folder = model_folder(model)
    path = _downloaded_card(model) if folder is None else folder / CARD
    if path is None or not path.is_file():
        return {}
    try:
        return metadata_load(path) or {}
    except (ValueError, yaml.YAMLError):
        return {}


def _downloaded_card(model: str) -> Path | None:
    """Find the card of a model that was downloaded from the hub; None if it was not."""
    for repository in (model, f"sentence-transformers/{model}"):
        try:
            card = try_to_load_from_cache(repository, CARD)
        except HFValidationError:
            continue
        if isinstance(card, str):
            return Path(card)
    return None


def _base_model(base: str, card: Mapping[str, object]) -> tuple[str, ...]:
    """Return the hub id of a base model; for a folder, the base models on a hub that a card names."""
    if base == "minilm":
        return (MINILM,)
    if model_folder(base) is not None:
        names = _strings(card.get("base_model"))
        return tuple(name for name in names if is_hub_id(name) and not Path(name).exists())
    is_short = "/" not in base and isinstance(try_to_load_from_cache(f"sentence-transformers/{base}", CARD), str)
    return (f"sentence-transformers/{base}" if is_short else base,)


def is_hub_id(name: str) -> bool:
    """Return True for a name that a hub accepts.

    >>> is_hub_id("sentence-transformers/all-MiniLM-L6-v2"), is_hub_id("/models/minilm"), is_hub_id("my stories.csv")
    (True, False, False)
    """
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _languages(card: Mapping[str, object]) -> tuple[str, ...]:
    """Return the languages of a card as ISO codes, without regions and scripts, which a hub refuses."""
    tags = card.get("language")
    codes: list[str] = []
    for tag in tags if isinstance(tags, list) else [tags]:
        # Unquoted, YAML reads the code of Norwegian as a Boolean.
        code = re.split("[-_]", "no" if tag is False else str(tag))[0].lower()
        if re.fullmatch(r"[a-z]{2,3}|multilingual|code", code):
            codes.append(code)
    return tuple(dict.fromkeys(codes))


def _license(card: Mapping[str, object]) -> dict[str, str] | None:
    """Select the fields of the license in the metadata of a card; None without a license."""
    fields = {}
    for name in LICENSE_FIELDS:
        value = card.get(name)
        if isinstance(value, str):
            fields[name] = value
    return fields if "license" in fields else None


def _strings(value: object) -> tuple[str, ...]:
    """Return a string, or the strings of a list, as a tuple; empty for other values."""
    values = value if isinstance(value, list) else [value]
    return tuple(value for value in values if isinstance(value, str))
