"""How a command reads stories: with views beside them, or with placeholders for names."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from narrlit.commands.devices import say
from narrlit.errors import OptionError
from narrlit.models.fusion import fusion_of
from narrlit.text.pseudonyms.options import Backend, Pseudonyms, Scope

if TYPE_CHECKING:
    from narrlit.commands.model_options import ModelOptions
    from narrlit.data.records import Story, Triple
    from narrlit.data.views import Joined
    from narrlit.models.view_encoder import AnyEncoder


@dataclass(frozen=True)
class TextOptions:
    """What is read of stories.

    Attributes:
        views: file of stories' views (text, theme, plot_events or course_of_action, outcome), or several with commas
            between.
        missing_views: of a story without views: refuse, or cut it by position.
        pseudonymise: placeholders in place of names, found by rules, spacy or spacy+coref.
        scope: what shares a mapping of names, a story or a triple.
        pipeline: of spaCy, by name or path.
        coref_model: of fastcoref, by name or path.
    """

    views: str | None = None
    missing_views: Literal["refuse", "positional"] = "refuse"
    pseudonymise: Backend = "none"
    scope: Scope = "story"
    pipeline: str = Pseudonyms.pipeline
    coref_model: str = Pseudonyms.coref_model

    def __post_init__(self) -> None:
        """Check what belongs together.

        Raises:
            OptionError: for an option without another that it needs.
        """
        names = self.pseudonyms  # which checks itself
        if names.backend == "none" and names != Pseudonyms():
            raise OptionError("--scope, --pipeline and --coref-model need --pseudonymise")

    @property
    def reads_views(self) -> bool:
        """Whether stories are joined with views."""
        return self.views is not None or self.missing_views != "refuse"

    @property
    def pseudonyms(self) -> Pseudonyms:
        """How names become placeholders."""
        return Pseudonyms(self.pseudonymise, self.scope, self.pipeline, self.coref_model)

    def stories(self, stories: "list[Story]") -> list[str]:
        """Texts as the model reads them.

        Raises:
            DataError: for a story without views where they are needed.
            OptionError: for names that a triple's stories share.
        """
        from narrlit.data.pseudonyms import pseudonymised_stories
        from narrlit.data.records import Story

        joined = self._joined([story.text for story in stories], "stories")
        if joined is not None:
            stories = [Story(text, story.id) for text, story in zip(joined.texts, stories, strict=True)]
        return [story.text for story in pseudonymised_stories(stories, self.pseudonyms)]

    def triples(self, triples: "list[Triple]") -> "list[Triple]":
        """Triples as the model reads them.

        Raises:
            DataError: for a story without views where they are needed.
        """
        return self.triples_and_views(triples)[0]

    def triples_and_views(self, triples: "list[Triple]") -> "tuple[list[Triple], dict[str, Any] | None]":
        """Triples as `triples` gives them, and where their views are from, for records; None where none are read."""
        from narrlit.data.pseudonyms import pseudonymised_triples

        joined = self._joined([text for triple in triples for text in triple.texts], "triples")
        if joined is not None:
            found = iter(joined.texts)
            triples = [triple.with_texts([next(found) for _ in triple.texts]) for triple in triples]
        return pseudonymised_triples(triples, self.pseudonyms), None if joined is None else joined.provenance

    def record(self) -> dict[str, Any]:
        """Plain data for a result's record: what differs from stories as they are."""
        kept = {"views": self.views, "missing_views": self.missing_views if self.reads_views else None}
        names = {"pseudonyms": asdict(self.pseudonyms)} if self.pseudonymise != "none" else {}
        return {name: value for name, value in {**kept, **names}.items() if value is not None}

    def _joined(self, texts: list[str], what: str) -> "Joined | None":
        """Texts with their views; None where none are read."""
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
        fusion: weights of a story's text, theme, plot and outcome with commas between, or submitted, equal, full_only,
            higher_theme or action_only; a model of views has its own if not given, another one needs it to read views.
    """

    fusion: str | None = None

    def __post_init__(self) -> None:
        """Check what belongs together, and the weights.

        Raises:
            OptionError: for an option without another that it needs, or weights that are none.
        """
        super().__post_init__()
        if self.fusion is not None:
            fusion_of(self.fusion)

    def encoder(self, use: "ModelOptions") -> "AnyEncoder":
        """The model, which fuses views if that is asked for; says so if it was trained on stories read otherwise.

        Raises:
            OptionError: if views are given to a model that does nothing with them.
        """
        from narrlit.models.source import pseudonyms_of
        from narrlit.models.view_encoder import ViewEncoder, fused

        found = fused(use.load(), None if self.fusion is None else fusion_of(self.fusion))
        if self.reads_views and not isinstance(found, ViewEncoder):
            raise OptionError("this model reads no views: give --fusion, such as submitted, or leave --views out")
        trained, here = pseudonyms_of(str(use.model)), self.pseudonyms
        if trained is not None and trained["backend"] != here.backend:
            say(
                f"warning: {use.model} was trained on stories with placeholders for names, unlike those read here: "
                f"--pseudonymise {trained['backend']} (--scope {trained['scope']} for triples) reads them alike"
            )
        return found

    def record(self) -> dict[str, Any]:
        """Plain data for a result's record: what differs from stories as they are."""
        return super().record() | ({} if self.fusion is None else {"fusion": self.fusion})
