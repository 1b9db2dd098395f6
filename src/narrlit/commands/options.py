"""Options shared by several commands: models, stories and labeled triples."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import narrlit
from narrlit.data.schema import Track
from narrlit.encoding.options import CACHE, Device
from narrlit.encoding.postprocessing import Postprocessing, postprocessing_of
from narrlit.encoding.story_texts import StoryTexts, story_texts
from narrlit.errors import OptionError
from narrlit.measures.meanmax import MeanMax
from narrlit.models.config import Long, Precision, parse_fusion
from narrlit.preprocessing.pseudonyms import ClusterParts, PseudonymOptions, Scope

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder
    from narrlit.measures import Similarity


@dataclass(frozen=True)
class LoadOptions:
    """Options for loading models.

    Attributes:
        max_length: maximum length of a text in tokens; default: that of the model's training.
        long: how to handle longer texts; windows embeds overlapping windows of whole sentences and averages their
            embeddings, truncate cuts the texts as in training, refuse stops with an error.
        precision: floating-point format of the computation; bf16 needs AVX512-BF16, AMX or a GPU, is one and a half to
            three times as fast on a CPU and changes cosines by less than 0.006; auto is bf16 if the hardware supports
            it, else fp32; default: the model's own.
        device: device to compute on; auto is a GPU if there is one.
        trust_remote_code: run Python files that come with the model; only for models from authors you trust.
    """

    max_length: int | None = None
    long: Long = "windows"
    precision: Precision | None = None
    device: Device = "auto"
    trust_remote_code: bool = False


@dataclass(frozen=True)
class ModelOptions(LoadOptions):
    """Options for an optional model and for loading it.

    Attributes:
        model: a folder, a run, a checkpoint, a hub id, narrlit-mini or minilm.
    """

    model: str | None = None


@dataclass(frozen=True)
class TextOptions:
    """Options for reading stories.

    Attributes:
        views: file of views (text, theme, plot_events or course_of_action, outcome), or several, comma-separated.
        missing_views: how to handle stories without views; positional splits their text into views by position.
        pseudonymize: replace names, found by spaCy, with placeholders.
        scope: texts that share one mapping from names to placeholders.
        pipeline: name or folder of the spaCy pipeline.
        coref: link names of the same character by coreference resolution (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        cluster: parts of a coreference cluster to replace: its names, or all its mentions, also pronouns and
            descriptions.
    """

    views: str | None = None
    missing_views: Literal["refuse", "positional"] = "refuse"
    pseudonymize: bool = False
    scope: Scope = "story"
    pipeline: str = PseudonymOptions.pipeline
    coref: bool = False
    coref_model: str = PseudonymOptions.coref_model
    cluster: ClusterParts = "names"

    def __post_init__(self) -> None:
        if not self.pseudonymize and self.pseudonyms != PseudonymOptions():
            raise OptionError("options_need_pseudonymize")

    @property
    def reads_views(self) -> bool:
        """True if stories are read with views."""
        return self.views is not None or self.missing_views != "refuse"

    @property
    def pseudonyms(self) -> PseudonymOptions:
        """Settings of pseudonymization."""
        backend: Literal["spacy", "none"] = "spacy" if self.pseudonymize else "none"
        return PseudonymOptions(backend, self.scope, self.pipeline, self.coref, self.coref_model, self.cluster)

    @cached_property
    def texts(self) -> StoryTexts:
        """Texts of a story that the encoder reads: views and pseudonyms."""
        return story_texts(self.views, self.missing_views, self.pseudonyms)

    def load(self, model: str, loading: LoadOptions, cache: str | None = CACHE) -> "StoryEncoder":
        """Load a model that reads stories according to these options.

        Raises:
            ModelError: if there is no such model.
        """
        return self._load(model, loading, cache)

    def _load(
        self,
        model: str,
        loading: LoadOptions,
        cache: str | None,
        *,
        fusion: str | None = None,
        postprocess: str | None = None,
        fit_on: str | tuple[str, ...] = (),
        transductive: bool = False,
    ) -> "StoryEncoder":
        return narrlit.load(
            model,
            max_length=loading.max_length,
            long=loading.long,
            precision=loading.precision,
            device=loading.device,
            views=self.views,
            missing_views=self.missing_views,
            pseudonyms=self.pseudonyms,
            fusion=fusion,
            postprocess=postprocess,
            fit_on=fit_on,
            transductive=transductive,
            cache=cache,
            trust_remote_code=loading.trust_remote_code,
        )


@dataclass(frozen=True)
class StoryOptions(TextOptions):
    """Options for reading stories and for post-processing their embeddings.

    Attributes:
        fusion: comma-separated fusion weights of text, theme, action and outcome, or a preset: submitted, equal,
            full_only, higher_theme, action_only; default: the model's own.
        postprocess: comma-separated post-processing steps: center, abtt:K (remove the first K principal components),
            whiten, truncate:N (keep the first N dimensions).
        fit_on: file of stories on which the post-processing is fitted, or several, comma-separated; stories that are
            also embedded are excluded.
        transductive: also fit the post-processing on the embedded stories; the result is flagged as transductive and is
            not valid for Track B.
    """

    fusion: str | None = None
    postprocess: str | None = None
    fit_on: str | None = None
    transductive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fusion is not None:
            parse_fusion(self.fusion)
        self.postprocessing  # noqa: B018 - raises an error for invalid options

    @property
    def postprocessing(self) -> Postprocessing | None:
        """Post-processing steps, or None."""
        return postprocessing_of(self.postprocess, self.fit_on or (), self.transductive)

    def load(self, model: str, loading: LoadOptions, cache: str | None = CACHE) -> "StoryEncoder":
        """Load a model that reads stories according to these options.

        Raises:
            ModelError: if there is no such model.
        """
        return self._load(
            model,
            loading,
            cache,
            fusion=self.fusion,
            postprocess=self.postprocess,
            fit_on=self.fit_on or (),
            transductive=self.transductive,
        )


@dataclass(frozen=True)
class LabelOptions:
    """Options for reading labeled triples.

    Attributes:
        labels: file with the labels (text_a_is_closer), if they are not in the file of triples.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
    """

    labels: str | None = None
    strict: bool = False


@dataclass(frozen=True)
class ComparedTripleOptions(LabelOptions):
    """Options for labeled triples on which answers, embeddings and submissions are scored.

    Attributes:
        stories: file of the embedded stories, in the same order as the embeddings of an .npy file or a submission.
        track: track of the triples; a submission is scored by its Track A answers (a) or its Track B embeddings (b);
            default: b if --stories contains every story of the triples, else a.
    """

    stories: str | None = None
    track: Track | None = None


@dataclass(frozen=True)
class ScorerOptions(MeanMax):
    """Options for the measure of similarity.

    Attributes:
        scorer: measure of similarity; cosine compares embeddings, meanmax compares sentences, passages compares the
            best matching passages.
    """

    scorer: Literal["cosine", "meanmax", "passages"] = "cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scorer != "meanmax" and self.meanmax != MeanMax():
            raise OptionError("options_of_meanmax")

    @property
    def meanmax(self) -> MeanMax:
        """Settings of Mean-Max."""
        return MeanMax(self.reading, self.gamma, self.windows, self.tau)

    def measure(self, encoder: "StoryEncoder") -> "Similarity":
        """Return the measure of similarity with the given encoder."""
        if self.scorer == "passages":
            return narrlit.measures.PassageSimilarity(encoder)
        if self.scorer == "meanmax":
            return narrlit.measures.MeanMaxSimilarity(encoder, self.meanmax)
        return narrlit.measures.Cosine(encoder)


def listed(value: str | None) -> list[str]:
    """Split the value of an option at commas, without empty parts.

    >>> listed("a, b,"), listed(None)
    (['a', 'b'], [])
    """
    parts = (value or "").split(",")
    return [part.strip() for part in parts if part.strip()]
