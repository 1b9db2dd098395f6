"""Options that several commands share: the model, what it reads of stories, and labelled triples."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrlit.console import say
from narrlit.data.readers import read_triples
from narrlit.data.reading import Reading
from narrlit.data.records import Triple
from narrlit.errors import ModelError, OptionError, did_you_mean
from narrlit.models.fusion import fusion_of
from narrlit.text.pseudonyms.options import Backend, Pseudonyms, Scope

if TYPE_CHECKING:
    import torch

    from narrlit.data.records import Story
    from narrlit.data.views import Joined
    from narrlit.models.view_encoder import AnyEncoder

Device = Literal["auto", "cpu", "cuda", "mps"]
RECORD = "run.json"


def pick_device(name: Device) -> "torch.device":
    """Return the device of a name; `auto` is a GPU where there is one.

    Raises:
        OptionError: if the machine has no such device.
    """
    import torch

    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, available in present.items() if available))
    if not present[name]:
        raise OptionError(f"--device {name}: this machine has none; use auto or cpu")
    return torch.device(name)


@dataclass(frozen=True)
class LoadOptions:
    """How models are loaded.

    Attributes:
        max_length: tokens read of a text; by default as the model was trained.
        device: where to compute; auto takes a GPU where there is one.
        trust_remote_code: run Python files that come with the model; only for models whose author you trust.
    """

    max_length: int | None = None
    device: Device = "auto"
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        """Check the length.

        Raises:
            OptionError: for a length without room for a word.
        """
        if self.max_length is not None and self.max_length < 3:
            raise OptionError(f"--max-length {self.max_length}: at least 3 tokens are needed")

    def load_named(self, model: str) -> "AnyEncoder":
        """Load the encoder of a name onto the device.

        Raises:
            ModelError: if there is no such model or it can't be loaded.
            OptionError: if the machine lacks the device.
        """
        from narrlit.models.source import load_encoder

        device = pick_device(self.device)
        source = find_model(model)
        try:
            return load_encoder(source, self.trust_remote_code, self.max_length).to(device)
        except ModelError as error:
            variable = next((name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if os.environ.get(name)), None)
            if variable is None or Path(source).exists() or source == "minilm":
                raise
            raise ModelError(f"{error}; {variable} is set, so that nothing is downloaded: unset it") from error


@dataclass(frozen=True)
class ModelOptions(LoadOptions):
    """A model, where there may be none.

    Attributes:
        model: a folder, a run folder, a checkpoint, a hub id or minilm.
    """

    model: str | None = None

    def load(self) -> "AnyEncoder":
        """Load the encoder, as `load_named` does."""
        return self.load_named(str(self.model))


def find_model(name: str) -> str:
    """Resolve a model's name before anything is loaded: `runs/NAME` is its newest version.

    Raises:
        ModelError: for a folder without a model, or a missing one beside others, which is no hub id.
    """
    path = Path(name)
    if path.is_dir() and not any(path.iterdir()):
        raise ModelError(f"--model {name}: the folder is empty; name a run, a checkpoint or a model folder")
    if path.is_dir() and not (path / RECORD).is_file():
        versions = sorted(path.glob(f"*/{RECORD}"), key=lambda record: record.stat().st_mtime)
        if versions:
            say(f"--model {name}: {versions[-1].parent.name}, the newest of {len(versions)}")
            return str(versions[-1].parent)
    if not path.exists() and path.parent != Path() and path.parent.is_dir() and name != "minilm":
        siblings = sorted(sibling.name for sibling in path.parent.iterdir() if not sibling.name.startswith("."))
        listed = ", ".join(siblings[:8]) or "nothing"
        raise ModelError(
            f"--model {name}: does not exist{did_you_mean(path.name, siblings)}; {path.parent} holds {listed}"
        )
    return name


@dataclass(frozen=True)
class TextOptions:
    """What is read of stories.

    Attributes:
        views: file of stories' views (text, theme, plot_events or course_of_action, outcome), or several with commas
            between.
        missing_views: stories without views are refused, or get views cut by position.
        pseudonymize: replace names by placeholders, found by this backend.
        scope: texts that share a mapping of names.
        pipeline: spaCy pipeline, name or path.
        coref_model: fastcoref model, name or path.
    """

    views: str | None = None
    missing_views: Literal["refuse", "positional"] = "refuse"
    pseudonymize: Backend = "none"
    scope: Scope = "story"
    pipeline: str = Pseudonyms.pipeline
    coref_model: str = Pseudonyms.coref_model

    def __post_init__(self) -> None:
        """Check which options belong together.

        Raises:
            OptionError: for an option without another that it needs.
        """
        names = self.pseudonyms  # which checks itself
        if names.backend == "none" and names != Pseudonyms():
            raise OptionError("--scope, --pipeline and --coref-model need --pseudonymize")

    @property
    def reads_views(self) -> bool:
        """Whether stories have views beside their text."""
        return self.views is not None or self.missing_views != "refuse"

    @property
    def pseudonyms(self) -> Pseudonyms:
        """Settings of pseudonymization."""
        return Pseudonyms(self.pseudonymize, self.scope, self.pipeline, self.coref_model)

    def stories(self, stories: "list[Story]") -> list[str]:
        """Prepare stories' texts for the model.

        Raises:
            DataError: for a story without views where they are needed.
            OptionError: for a mapping of names that a triple shares.
        """
        from narrlit.data.pseudonyms import pseudonymised_stories
        from narrlit.data.records import Story

        joined = self._joined([story.text for story in stories], "stories")
        if joined is not None:
            stories = [Story(text, story.id) for text, story in zip(joined.texts, stories, strict=True)]
        return [story.text for story in pseudonymised_stories(stories, self.pseudonyms)]

    def triples(self, triples: list[Triple]) -> list[Triple]:
        """Prepare triples for the model.

        Raises:
            DataError: for a story without views where they are needed.
        """
        return self.triples_and_views(triples)[0]

    def triples_and_views(self, triples: list[Triple]) -> tuple[list[Triple], dict[str, Any] | None]:
        """Prepare triples, and describe for records where their views come from; None where none are read."""
        from narrlit.data.pseudonyms import pseudonymised_triples

        joined = self._joined([text for triple in triples for text in triple.texts], "triples")
        if joined is not None:
            texts = iter(joined.texts)
            triples = [triple.with_texts([next(texts) for _ in triple.texts]) for triple in triples]
        return pseudonymised_triples(triples, self.pseudonyms), None if joined is None else joined.provenance

    def record(self) -> dict[str, Any]:
        """Settings that differ from reading stories as they are, as plain data."""
        views = {"views": self.views, "missing_views": self.missing_views if self.reads_views else None}
        names = {"pseudonyms": asdict(self.pseudonyms)} if self.pseudonymize != "none" else {}
        return {name: value for name, value in {**views, **names}.items() if value is not None}

    def _joined(self, texts: list[str], what: str) -> "Joined | None":
        if not self.reads_views:
            return None
        from narrlit.data.views import ViewBook, ViewFiles, listed

        book = ViewBook(ViewFiles(listed(self.views), self.missing_views))
        say(f"views: {book.summary()}")
        joined = book.joined(texts, what)
        say(joined.summary)
        return joined


@dataclass(frozen=True)
class StoryOptions(TextOptions):
    """What a model reads of stories.

    Attributes:
        fusion: weights of text, theme, action and outcome with commas between, or a preset: submitted, equal,
            full_only, higher_theme, action_only; a model of views has its own.
    """

    fusion: str | None = None

    def __post_init__(self) -> None:
        """Check which options belong together, and the weights.

        Raises:
            OptionError: for an option without another that it needs, or invalid weights.
        """
        super().__post_init__()
        if self.fusion is not None:
            fusion_of(self.fusion)

    def encoder(self, use: ModelOptions) -> "AnyEncoder":
        """Load the model, with fusion of views if that is wanted; warn if it was trained on other pseudonyms.

        Raises:
            OptionError: if views are given to a model that reads none.
        """
        from narrlit.models.source import pseudonyms_of
        from narrlit.models.view_encoder import ViewEncoder, fused

        encoder = fused(use.load(), None if self.fusion is None else fusion_of(self.fusion))
        if self.reads_views and not isinstance(encoder, ViewEncoder):
            raise OptionError("this model reads no views: give --fusion, such as submitted, or leave --views out")
        trained, here = pseudonyms_of(str(use.model)), self.pseudonyms
        if trained is not None and trained["backend"] != here.backend:
            say(
                f"warning: {use.model} was trained on stories with placeholders for names, unlike those read here: "
                f"--pseudonymize {trained['backend']} (--scope {trained['scope']} for triples) reads them alike"
            )
        return encoder

    def record(self) -> dict[str, Any]:
        """Settings that differ from reading stories as they are, as plain data."""
        return super().record() | ({} if self.fusion is None else {"fusion": self.fusion})


@dataclass(frozen=True)
class LabelOptions:
    """How labelled triples are read.

    Attributes:
        labels: file of text_a_is_closer, where labels are in a file of their own.
        strict: refuse the first invalid row, instead of dropping and counting it.
    """

    labels: str | None = None
    strict: bool = False

    def read(self, triples: str) -> Reading[Triple]:
        """Read the triples of a file, each with its label.

        Raises:
            DataError: if a file can't be read.
            OptionError: if a triple has no label.
        """
        reading = read_triples(triples, labels=self.labels, strict=self.strict)
        unlabelled = sum(triple.a_is_closer is None for triple in reading.records)
        if unlabelled:
            rows = f"{unlabelled} {'row' if unlabelled == 1 else 'rows'} without a label"
            if self.labels is None:
                raise OptionError(f"{triples} has {rows}: give --labels FILE")
            raise OptionError(f"{self.labels} has {rows}: write true or false in each")
        return reading


def seen_in_training(model: str, sha256: str) -> str | None:
    """Say why a model's accuracy on triples is no result, if the record of its run tells; else None.

    Args:
        model: as a user names it; the record is that of the run folder, or of a checkpoint's run.
        sha256: of the file of triples.

    Raises:
        ModelError: if the record is broken.
    """
    from narrlit.models.source import find_record, read_record

    path = find_record(model)
    if path is None:
        return None
    record = read_record(path)
    trained, validated = (_files(record, stage) for stage in ("train", "validation"))
    flagged = (record.get("flags") or record.get("marks") or {}).get("trained_on_validation", False)
    if sha256 in trained:
        return f"trained on these triples: no result ({path.parent.name} trained on {trained[sha256]})"
    if flagged and sha256 in validated:
        return f"trained on these triples: no result ({path.parent.name} is flagged trained_on_validation)"
    if flagged:
        names = ", ".join(validated.values()) or "unnamed"
        return f"trained on triples that it was validated by ({names}): no result where these are among them"
    return None


def _files(record: dict[str, Any], stage: str) -> dict[str, str]:
    """Paths of a stage's files by their digests."""
    described = (record.get("data") or {}).get(stage) or {}
    return {file["sha256"]: file["path"] for file in described.get("files", [])}
