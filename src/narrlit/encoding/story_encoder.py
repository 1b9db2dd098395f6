"""The story encoder: every step from a story to its embedding. Outside training, nothing else embeds stories.

Letters in shapes: N stories, S sentences of a story, D dimension.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from narrlit.console import counted, say
from narrlit.data.schema import FloatArray, Story, Triples, composed, normal_text, triple_cosines
from narrlit.embedding_cache.shards import Readings, read_arrays, read_facts
from narrlit.embedding_cache.space import EmbeddingSpace, model_identity
from narrlit.encoding.exported import ExportedEncoder, export_folder, is_exported
from narrlit.encoding.options import Loading
from narrlit.encoding.postprocessing import Postprocessing, PostprocessingFit
from narrlit.encoding.story_texts import StoryTexts
from narrlit.errors import DataError, ModelError, OptionError, printable, reason
from narrlit.models.affine_steps import AffineMap, fit_steps
from narrlit.models.config import Fusion, Role, parse_steps
from narrlit.models.coverage import LEAST, Coverage
from narrlit.preprocessing.passages import split_passages

if TYPE_CHECKING:
    from narrlit.embedding_cache.storage import EmbeddingCache
    from narrlit.models.encoder import Encoder

StoryOrText = Story | str
"""A prepared story, or a text that is embedded unchanged."""
TRIPLE_ROLES: tuple[Role, Role, Role] = ("anchor", "candidate", "candidate")


@dataclass(frozen=True)
class EncoderFacts:
    """Properties of an encoder that are known without its weights.

    Attributes:
        prompts: text before a story, by role.
        dimension: dimension D of an embedding before post-processing.
        max_length: maximum length of a text in tokens.
        reads: units of a story that are embedded: its text, each sentence, or its text and views.
        unit: name of the unit that `max_length` limits, singular and plural.
        vocabulary: size of the vocabulary.
        rounding_error: relative rounding error of the number format of the computation.
    """

    prompts: Mapping[Role, str]
    dimension: int
    max_length: int
    reads: Literal["text", "sentences", "views"]
    unit: tuple[str, str]
    vocabulary: int
    rounding_error: float

    @classmethod
    def of(cls, encoder: "Encoder") -> "EncoderFacts":
        """Collect the properties of a loaded encoder."""
        roles: tuple[Role, ...] = ("anchor", "candidate", "story")
        return cls(
            prompts={role: encoder.prompt(role) for role in roles},
            dimension=encoder.dimension,
            max_length=encoder.max_length,
            reads=encoder.reads,
            unit=encoder.unit,
            vocabulary=len(encoder.model[0].tokenizer),
            rounding_error=encoder.rounding_error,
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any] | None) -> "EncoderFacts | None":
        """Create facts from the result of `dataclasses.asdict`; None for a record with other fields."""
        names = {attribute.name for attribute in fields(cls)}
        if record is None or set(record) != names:
            return None
        return cls(**{**record, "unit": tuple(record["unit"])})

    @property
    def symmetric(self) -> bool:
        """True if anchors and candidates have the same prompt."""
        return self.prompts["anchor"] == self.prompts["candidate"]


@dataclass(frozen=True, eq=False)
class Passages:
    """Passages of a story, each of whole sentences with about 25 words in total, and their unit embeddings (S, D)."""

    texts: list[str]
    vectors: FloatArray


class StoryEncoder:
    """Model with all settings of how stories are read and embedded; created by `narrlit.load`.

    It is immutable. The weights are loaded when they are first needed; if every embedding is cached, not at all.

    Attributes:
        name: name of the model, as given by the user.
        texts: settings of how stories are read.
        facts: properties of the model that are known without its weights.

    >>> encoder = StoryEncoder("minilm")
    >>> encoder.embed(["A knight seeks a grail.", "A diver seeks a pearl."]).shape
    (2, 384)
    """

    def __init__(
        self,
        model: "str | Path | Encoder",
        *,
        texts: StoryTexts = StoryTexts(),
        loading: Loading = Loading(),
        fusion: Fusion | None = None,
        postprocessing: Postprocessing | None = None,
        cache: str | Path | None = None,
    ) -> None:
        """Create an encoder from the name of a model, or from a loaded model, whose settings are kept.

        Args:
            model: a folder, a run folder, a checkpoint, a hub id, `narrlit-mini` or `minilm`; or an encoder.
            texts: settings of how stories are read.
            loading: how the model is loaded.
            fusion: fusion weights of text and views; None: the model's own.
            postprocessing: post-processing of the embeddings.
            cache: folder of the embedding cache; None: no cache; loaded models are never cached.
        """
        self.texts = texts
        self.loading = loading
        self.fusion = fusion
        self.postprocessing = postprocessing
        self.cache = None if cache is None else Path(cache)
        self._fit: PostprocessingFit | None = None
        self._coverage = Coverage()
        self._store: EmbeddingCache | None = None
        self._exported: ExportedEncoder | None = None
        self._is_given = not isinstance(model, str | Path)
        if isinstance(model, str | Path):
            self.name = str(model)
        else:
            self.name = model.config.model
            self.cache = None
            self.module = model  # instead of the cached property

    @cached_property
    def module(self) -> "Encoder":
        """The model with its weights, on its device.

        Raises:
            ModelError: if the model does not exist or can't be loaded.
            OptionError: if the machine has no such device, or the device does not support the precision.
        """
        from narrlit.encoding.model_loading import load_module  # torch; an exported encoder needs none

        return load_module(self.name, self.loading, self.fusion)

    @property
    def facts(self) -> EncoderFacts:
        """Properties of the model that are known without its weights."""
        if self._exported is not None:
            facts = EncoderFacts.from_record(self._exported.record.facts)
            if facts is not None:
                return facts
        if "module" not in self.__dict__ and self.cache is not None:
            facts = EncoderFacts.from_record(read_facts(self.cache, self._space))
            if facts is not None:
                return facts
        return self._facts_of_module

    @property
    def dimension(self) -> int:
        """Dimension D of an embedding."""
        return self.facts.dimension if self.affine_map is None else len(self.affine_map.bias)

    @property
    def coverage(self) -> Coverage:
        """Coverage of the embedded texts; a text counts once for each call that embeds it."""
        return self._coverage

    @property
    def record(self) -> dict[str, Any]:
        """All settings that affect an embedding, as plain data."""
        record = {**self._space.record, **self.texts.settings}
        if self._fit is not None:
            record["postprocess"] = self._fit.record
        elif self.postprocessing is not None:
            record["postprocess"] = {"steps": self.postprocessing.steps}
        return record

    @property
    def about(self) -> dict[str, Any]:
        """Settings that differ from their defaults, as plain data for reports."""
        about: dict[str, Any] = {}
        if self.texts.views is not None:
            about = {"views": ",".join(self.texts.views.paths) or None, "missing_views": self.texts.views.missing}
        if self.texts.pseudonyms is not None:
            about["pseudonyms"] = asdict(self.texts.pseudonyms)
        if self.fusion is not None:
            about["fusion"] = str(self.fusion)
        if self._fit is not None:
            about |= {"postprocess": self._fit.record, "transductive": self._fit.is_transductive}
        elif self.postprocessing is not None and not self.postprocessing.is_fitted:
            about["postprocess"] = {"steps": self.postprocessing.steps}
        return about

    @property
    def fingerprint(self) -> str:
        """Digest of all settings that affect an embedding: encoders with the same digest give the same embeddings."""
        return hashlib.sha256(_json(self.record).encode()).hexdigest()

    @property
    def is_plain(self) -> bool:
        """True if the name of the model and `loading` decide all embeddings, so that another process can load it."""
        reads_texts_alone = self.texts.views is None and self.texts.pseudonyms is None
        return not self._is_given and reads_texts_alone and self.fusion is None and self.postprocessing is None

    @property
    def is_as_trained(self) -> bool:
        """True if no setting changes the embeddings of the trained model: fusion, post-processing or maximum length."""
        return self.fusion is None and self.postprocessing is None and self.loading.max_length is None

    @property
    def is_transductive(self) -> bool:
        """True if post-processing was fitted on stories that are embedded."""
        return self._fit is not None and self._fit.is_transductive

    def fitted_for(self, stories: Sequence[Story]) -> "StoryEncoder":
        """Return this encoder with its post-processing, if any, fitted on stories other than these.

        Raises:
            OptionError: if most of the stories to fit on are among these.
        """
        if self.postprocessing is None or not self.postprocessing.is_fitted:
            return self
        embedded = {normal_text(story.source_text) for story in stories}
        if self._fit is not None and self._fit.embedded == embedded:
            return self
        self.require_one_prompt("post-processing")
        fitted = self._copy()
        fitted._fit = self.postprocessing.fit_for(stories)
        return fitted

    def require_one_prompt(self, purpose: str) -> None:
        """Raise ModelError if prompts differ by role, for a purpose that has one embedding for all roles."""
        prompts = self.facts.prompts
        if len(set(prompts.values())) > 1:
            raise ModelError(
                "prompts_by_role",
                model=self.name,
                anchor=prompts["anchor"],
                candidate=prompts["candidate"],
                purpose=purpose,
            )

    def embed(
        self, stories: Sequence[Story] | Sequence[str], role: Role = "story", progress: bool = False
    ) -> FloatArray:
        """Embed N stories; identical stories are embedded once.

        Args:
            stories: texts, or stories as `read_stories` returns them.
            role: role whose prompt precedes each story.
            progress: show a progress bar, and the number of cached embeddings, on stderr.

        Returns:
            (N, D) embeddings; row i belongs to story i. They are unit vectors if the model or its post-processing
            normalizes.

        Raises:
            DataError: if `stories` is a single string, or a story lacks views that the model reads.
            ModelError: if the model can't be loaded, or an embedding is not finite or all zeros.
        """
        if isinstance(stories, str):
            raise DataError("string_instead_of_list")
        return self.embed_prepared(self.prepare(stories), [role] * len(stories), progress)

    def score(self, triples: Triples, progress: bool = False) -> NDArray[np.float64]:
        """Compute the cosines (N, 2) of each triple's anchor with A and with B."""
        return triple_cosines(self.embed_triples(triples, progress))

    def embed_triples(self, triples: Triples, progress: bool = False) -> FloatArray:
        """Embed the stories of N triples, (N, 3, D), each in its role."""
        prepared = self.texts.prepare_triples(triples)
        stories = [prepared.stories[index] for index in prepared.indices.ravel().tolist()]
        vectors = self.embed_prepared(stories, TRIPLE_ROLES * len(prepared), progress)
        return vectors.reshape(len(prepared), 3, -1)

    def embed_parts(self, stories: Sequence[Story], progress: bool = True) -> tuple[FloatArray, Coverage]:
        """Embed text and views of N prepared stories separately, as unit vectors (N, 4, D).

        These embeddings are never cached. The coverage of the texts is also returned.
        """
        from narrlit.models.embedding import part_embeddings

        result = part_embeddings(self.module, stories, progress=progress)
        return result.embeddings, result.coverage

    def passages(
        self, stories: Sequence[Story] | Sequence[str], role: Role = "story", progress: bool = False
    ) -> list[Passages]:
        """Split N stories into passages, and embed each passage separately.

        Args:
            stories: texts, or stories as `read_stories` returns them.
            role: role whose prompt precedes each passage.
            progress: show a progress bar on stderr.

        Raises:
            ModelError: if the model can't embed single texts.

        >>> encoder = StoryEncoder("minilm")
        >>> (story,) = encoder.passages(["A king fell ill. His sons rode out to find the water of life."])
        >>> story.texts, story.vectors.shape
        (['A king fell ill. His sons rode out to find the water of life.'], (1, 384))
        """
        return self.passages_prepared(self.prepare(stories), role, progress)

    def passages_prepared(
        self, stories: Sequence[Story], role: Role = "story", progress: bool = False
    ) -> list[Passages]:
        """Split N prepared stories into passages, and embed each passage separately."""
        self.require_text()
        split = [split_passages(story.text) for story in stories]
        texts = list(chain.from_iterable(split))
        return _grouped(split, self.embed_prepared(texts, [role] * len(texts), progress))

    def embed_with_passages(
        self, stories: Sequence[Story] | Sequence[str], role: Role = "story"
    ) -> tuple[FloatArray, list[Passages]]:
        """Embed N stories and their passages together, which is faster for a few than `embed` and `passages`.

        Args:
            stories: texts, or stories as `read_stories` returns them.
            role: role whose prompt precedes each story and passage.

        Returns:
            (N, D) embeddings as of `embed`, and passages as of `passages`. A story of one passage is embedded once.

        Raises:
            ModelError: if the model can't embed single texts.
        """
        self.require_text()
        vectors, passages, _ = self.read_with_passages(self.prepare(stories), role)
        return vectors, passages

    def read_with_passages(
        self, stories: Sequence[Story], role: Role = "story"
    ) -> tuple[FloatArray, list[Passages], Coverage]:
        """Embed N prepared stories and their passages together; also return the coverage of the distinct stories."""
        split = [split_passages(story.text) for story in stories]
        items: list[StoryOrText] = [*stories, *chain.from_iterable(split)]
        vectors, coverage = self.read(items, [role] * len(items), covered=len(stories))
        return vectors[: len(stories)], _grouped(split, vectors[len(stories) :]), coverage

    def require_text(self) -> None:
        """Raise ModelError if the model can't embed single texts."""
        if self.facts.reads != "text":
            raise ModelError("model_without_passages")

    def prepare(self, stories: Sequence[Story] | Sequence[str]) -> list[Story]:
        """Attach views to stories and replace names in them, according to the settings."""
        return self.texts.prepare(list(map(_story, stories)))

    def embed_prepared(self, items: Sequence[StoryOrText], roles: Sequence[Role], progress: bool = False) -> FloatArray:
        """Embed N prepared stories, or texts as they are, each in its role, (N, D)."""
        return self.read(items, roles, progress)[0]

    def read(
        self,
        items: Sequence[StoryOrText],
        roles: Sequence[Role],
        progress: bool = False,
        covered: int | None = None,
    ) -> tuple[FloatArray, Coverage]:
        """Embed N prepared items, each in its role, (N, D); also return a coverage.

        Args:
            items: the items.
            roles: role of each item.
            progress: show a progress bar on stderr.
            covered: number of items, from the first on, whose coverage is returned, each distinct one once; None: all.
        """
        vectors, coverage = self._vectors(items, roles, progress, covered)
        self._coverage += coverage
        if self.affine_map is None or not len(vectors):
            return vectors, coverage
        return self.affine_map(vectors).astype(np.float32), coverage

    def without_postprocessing(self) -> "StoryEncoder":
        """Return this encoder without its post-processing."""
        plain = self._copy()
        plain.postprocessing = None
        return plain

    def without_cache(self) -> "StoryEncoder":
        """Return this encoder without its cache, with its fitted post-processing."""
        uncached = self._copy()
        uncached.cache = uncached._store = None
        uncached._fit = self._fit
        uncached.__dict__["affine_map"] = self.affine_map
        return uncached

    @property
    def export_folder(self) -> Path | None:
        """Folder of this encoder when exported for ONNX Runtime; None for settings that can't be exported.

        These are fusion, post-processing, another precision than float32, another device than the CPU, and weights
        that were given.
        """
        on_cpu = self.loading.device in ("auto", "cpu")
        in_float32 = self.loading.precision in (None, "fp32")
        is_alone = self.fusion is None and self.postprocessing is None
        if self._is_given or not (on_cpu and in_float32 and is_alone):
            return None
        return export_folder(self._space)

    def exported(self) -> "StoryEncoder":
        """Return this encoder with the weights that were exported for ONNX Runtime, so that it needs no torch.

        If they were not exported, or the model or these weights are loaded already, this encoder itself is returned.
        """
        is_loaded = "module" in self.__dict__ or self._exported is not None
        folder = None if is_loaded else self.export_folder
        if folder is None or not is_exported(folder):
            return self
        exported = self._copy()
        exported._exported = ExportedEncoder.open(folder, self.loading.long)
        return exported

    def for_worker(self) -> "StoryEncoder":
        """Return this encoder for another process, which may have another working directory and loads the weights."""
        copy = self._copy()
        copy.cache = None if self.cache is None else self.cache.absolute()
        copy._store = None
        copy._fit = self._fit
        if not self._is_given:
            for name in ("module", "_facts_of_module"):
                copy.__dict__.pop(name, None)
            if Path(self.name).exists():
                copy.name = str(Path(self.name).absolute())
        return copy

    @cached_property
    def affine_map(self) -> AffineMap | None:
        """The post-processing, fitted on its stories; None without post-processing."""
        if self.postprocessing is None:
            return None
        if not self.postprocessing.is_fitted:
            return fit_steps(parse_steps(self.postprocessing.steps), np.empty((0, self.facts.dimension), np.float32))
        fit = self._fit or self.postprocessing.fit_for([])
        stories = self.prepare(fit.stories)
        vectors, _ = self._vectors(stories, ["story"] * len(stories), progress=True)
        fitted = fit_steps(parse_steps(fit.steps), vectors)
        message = f"post-processing {fit.steps}: fitted on {len(stories)} distinct stories"
        if fit.record["left_out"]:
            message += f"; left out {fit.record['left_out']} that are embedded here"
        if fitted.shrinkage is not None:
            message += f"; covariance shrunk by {fitted.shrinkage:.2f}"
        say(message)
        if fit.is_transductive:
            say(f"warning: transductive: {fit.record['embedded']} of these stories are embedded here")
        return fitted

    @cached_property
    def _facts_of_module(self) -> EncoderFacts:
        return EncoderFacts.of(self.module)

    @cached_property
    def _identity(self) -> tuple[str, str | None]:
        """Name of the model, with the digest of its files, its revision on the hub, or the digest of loaded weights."""
        if not self._is_given:
            return model_identity(self.name)
        digest = hashlib.sha256()
        for name, weight in self.module.state_dict().items():
            digest.update(name.encode())
            digest.update(weight.detach().float().cpu().numpy().tobytes())
        return self.name, digest.hexdigest()

    @property
    def _space(self) -> EmbeddingSpace:
        """Settings that affect an embedding, except prompt, text and post-processing."""
        model, files = self._identity
        loading = self.loading
        precision = loading.precision
        if precision == "auto":  # differs from machine to machine
            from narrlit.encoding.model_loading import chosen_precision

            precision = chosen_precision(loading)
        return EmbeddingSpace.of_model(
            model, files, max_length=loading.max_length, long=loading.long, precision=precision, fusion=self.fusion
        )

    def _copy(self) -> "StoryEncoder":
        """Return an encoder with the same settings, which shares the model if it is loaded."""
        copy = StoryEncoder(
            self.module if self._is_given else self.name,
            texts=self.texts,
            loading=self.loading,
            fusion=self.fusion,
            postprocessing=self.postprocessing,
            cache=self.cache,
        )
        copy._store = self._store
        for name in ("module", "_facts_of_module", "_identity"):
            if name in self.__dict__:
                copy.__dict__[name] = self.__dict__[name]
        return copy

    def _vectors(
        self, items: Sequence[StoryOrText], roles: Sequence[Role], progress: bool, covered: int | None = None
    ) -> tuple[FloatArray, Coverage]:
        """Embed N items without post-processing, (N, D); each item is embedded once per prompt."""
        facts = self.facts
        if self.texts.views is not None and facts.reads != "views":
            raise OptionError("views_of_model_without_views")
        position_of: dict[_Request, int] = {}
        positions: list[int] = []
        for item, role in zip(items, roles, strict=True):
            request = _Request(facts.prompts[role], _content(item), item, role)
            positions.append(position_of.setdefault(request, len(position_of)))
        requests = list(position_of)
        if self.cache is None:
            vectors, readings = self._computed(requests, progress)
        else:
            vectors, readings = self._cached(self.cache, requests, progress)
        distinct = len(set(positions[:covered]))  # the first ones, as positions count them in their order
        return vectors[np.array(positions, dtype=np.int64)], Coverage.of_rows(readings[:distinct])

    def _computed(self, requests: Sequence["_Request"], progress: bool) -> tuple[FloatArray, Readings]:
        """Embed items with the model; also return the coverage of each."""
        vectors = np.empty((len(requests), self.facts.dimension), dtype=np.float32)
        readings = np.empty((len(requests), LEAST + 1))
        rows_by_role: dict[Role, list[int]] = defaultdict(list)
        for row, request in enumerate(requests):
            rows_by_role[request.role].append(row)
        for role, rows in rows_by_role.items():
            items = [requests[row].item for row in rows]
            vectors[rows], readings[rows] = self._embedded(items, role, progress)
        return vectors, readings

    def _embedded(self, items: Sequence[StoryOrText], role: Role, progress: bool) -> tuple[FloatArray, Readings]:
        """Embed items in one role with the model or, if there is one, with the exported encoder."""
        if self._exported is not None:
            texts = [item if isinstance(item, str) else item.text for item in items]
            return self._exported.embed(texts, role)
        from narrlit.models.embedding import embed_stories

        result = embed_stories(self.module, items, role, progress)
        return result.embeddings, result.readings

    def _cached(self, folder: Path, requests: Sequence["_Request"], progress: bool) -> tuple[FloatArray, Readings]:
        """Read items from the cache, and embed only the missing ones; embed all if the cache can't be written."""
        if self._store is None:  # opening it loads the model, which is not needed if everything is cached
            cached = read_arrays(self._space.folder(folder), self._keys(requests))
            if cached is not None and requests:
                self._say_cached(len(requests), progress)
                return cached
        try:
            return self._filled(folder, requests, progress)
        except OSError as error:
            problem = f"{folder}: {reason(error)}"
        except OptionError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            problem = printable(error)
        say(f"{problem}; embeddings are not cached")
        self.cache = self._store = None
        return self._computed(requests, progress)

    def _filled(self, folder: Path, requests: Sequence["_Request"], progress: bool) -> tuple[FloatArray, Readings]:
        """Embed items that are missing in the cache, add them to it, and read all items."""
        from narrlit.embedding_cache.filling import filled_arrays
        from narrlit.embedding_cache.storage import open_cache

        if self._store is None:
            facts = EncoderFacts.of(self.module)
            self.__dict__.pop("_identity", None)  # the revision on the hub is known only after loading
            self._store = open_cache(folder, self._space, facts=asdict(facts))
        store, keys = self._store, self._keys(requests)
        store.refresh()
        missing = len(store.missing(keys))
        if not missing:
            self._say_cached(len(keys), progress)
        elif progress:
            say(f"{self.name}: embedding {missing:,} of {len(keys):,} distinct texts")

        def embed_missing(positions: list[int]) -> tuple[FloatArray, Readings]:
            return self._computed([requests[position] for position in positions], progress=False)

        return filled_arrays(store, keys, embed_missing, progress=progress)

    def _say_cached(self, count: int, progress: bool) -> None:
        """Report the number of embeddings that were read from the cache."""
        if progress and count:
            say(f"{self.name}: {counted(count, 'vector')} from {self.cache}, none computed")

    def _keys(self, requests: Iterable["_Request"]) -> list[bytes]:
        """Compute the cache keys of items with their prompts; equal for all encoders of one embedding space."""
        space = self._space
        keys: list[bytes] = []
        for request in requests:
            keys += space.keys(request.prompt, [request.content])
        return keys


@dataclass(frozen=True)
class _Request:
    """Item to embed; requests with the same prompt and content are equal.

    Attributes:
        prompt: text before the item.
        content: everything that a model can read of the item.
        item: the item.
        role: a role with this prompt.
    """

    prompt: str
    content: str
    item: StoryOrText = field(compare=False)
    role: Role = field(compare=False)


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """Scale vectors (N, D) to length 1."""
    unit: FloatArray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _story(item: StoryOrText) -> Story:
    """Return a story unchanged, and a text, with composed letters, as a story.

    Raises:
        OptionError: if the text is not Unicode, as words of a terminal with another encoding.
    """
    if not isinstance(item, str):
        return item
    try:
        item.encode()
    except UnicodeEncodeError as error:
        raise OptionError("text_not_unicode", text=printable(item, 60)) from error
    return Story("", composed(item))


def _grouped(split: Sequence[list[str]], vectors: FloatArray) -> list[Passages]:
    """Group the embeddings of all passages (P, D) by story, as unit vectors."""
    ends = np.cumsum(list(map(len, split)))
    return list(map(Passages, split, np.split(unit_vectors(vectors), ends[:-1])))


def _content(item: StoryOrText) -> str:
    """Return everything that a model can read of an item, as one string."""
    if isinstance(item, str):
        return item
    if item.views is None:
        return item.text
    return json.dumps([item.text, *item.views.texts])


def _json(content: Mapping[str, object]) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
