"""Options that several commands share: the model, what it reads of stories, and labeled triples."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from narrlit.console import say
from narrlit.data.readers import Stories, read_any, read_stories, read_triples
from narrlit.data.rows import Layout, file_digest
from narrlit.data.schema import FloatArray, Story, StoryTable, TrainingExamples, Triple, Triples, Views, normal_text
from narrlit.data.views import StoryViews, ViewFiles
from narrlit.errors import ModelError, OptionError, did_you_mean, reading
from narrlit.models.config import Long, Precision, parse_fusion
from narrlit.models.postprocessing import fit_steps, parse_steps
from narrlit.preprocessing.pseudonyms import PseudonymOptions, Scope, pseudonymize_texts

if TYPE_CHECKING:
    import torch

    from narrlit.models.encoder import Encoder

Device = Literal["auto", "cpu", "cuda", "mps"]
Track = Literal["a", "b"]
"""Track of the shared task: a, which candidate is closer; b, one vector for each story."""


def say_rows(rows: Triples | TrainingExamples) -> None:
    """Print how many rows of a file were read, dropped or look suspicious."""
    if rows.report is not None:
        say(rows.report.summary())


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
    """Options of loading models.

    Attributes:
        max_length: tokens of a text that the model reads at once; by default as it was trained.
        long: longer texts are read in overlapping windows of whole sentences, whose embeddings are averaged, truncated,
            as in training, or refused.
        precision: number format to compute in; bf16 is two to three times as fast where the machine has it
            (AVX512-BF16, AMX or a GPU), refused elsewhere, and changes cosines by less than 0.006; auto is bf16 where
            the machine has it, else fp32; by default the model's own.
        device: where to compute; auto takes a GPU where there is one.
        trust_remote_code: run Python files that come with the model; only for models whose author you trust.
    """

    max_length: int | None = None
    long: Long = "windows"
    precision: Precision | None = None
    device: Device = "auto"
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 3:
            raise OptionError(f"--max-length {self.max_length}: at least 3 tokens are needed")

    def load_named(self, model: str) -> "Encoder":
        """Load the encoder of a name onto the device.

        Raises:
            ModelError: if there is no such model or it can't be loaded.
            OptionError: if the machine lacks the device, or the device bf16.
        """
        from narrlit.models.capabilities import no_bf16, pick_precision
        from narrlit.models.registry import load_encoder

        device, path = pick_device(self.device), Path(model)
        precision = pick_precision(self.precision, device)
        if not path.exists() and path.parent != Path() and (path.parent.is_dir() or path.parts[0] == "runs"):
            siblings = sorted(child.name for child in path.parent.glob("[!.]*"))
            raise ModelError(
                f"--model {model}: does not exist{did_you_mean(path.name, siblings)}; {path.parent} holds "
                f"{', '.join(siblings[:8]) or 'nothing'}"
            )
        try:
            with reading("model", model, "see --model in --help", ModelError):
                remote = self.trust_remote_code
                encoder = load_encoder(model, trust_remote_code=remote, max_length=self.max_length, long=self.long)
                encoder = encoder.to(device).cast(precision)
        except ModelError as error:
            variable = next((name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if os.environ.get(name)), None)
            if variable is None or path.exists() or model == "minilm":
                raise
            raise ModelError(f"{error}; {variable} is set, so that nothing is downloaded: unset it") from error
        if self.precision == "auto" and precision == "fp32":
            say(f"--precision auto: float32; {no_bf16(device)}")
        return encoder

    def chosen_precision(self) -> Precision | None:
        """Choose the number format as `load_named` does; None: the model's own."""
        if self.precision != "auto":
            return self.precision
        from narrlit.models.capabilities import pick_precision

        return pick_precision("auto", pick_device(self.device))


@dataclass(frozen=True)
class ModelOptions(LoadOptions):
    """A model, where there may be none.

    Attributes:
        model: a folder, a run folder, a checkpoint, a hub id or minilm.
    """

    model: str | None = None


@dataclass(frozen=True)
class InputOptions:
    """Options of files of stories.

    Attributes:
        text_column: column of the text; by default text, story, plot, summary, synopsis or description.
        id_column: column of the ids; by default id.
        title_column: column of the titles; by default title.
        one_per_line: each line of a text file is a story.
        by_blank_line: blank lines divide a text file into stories.
    """

    text_column: str | None = None
    id_column: str | None = None
    title_column: str | None = None
    one_per_line: bool = False
    by_blank_line: bool = False

    def __post_init__(self) -> None:
        if self.one_per_line and self.by_blank_line:
            raise OptionError("--one-per-line and --by-blank-line exclude each other: give one")

    @property
    def layout(self) -> Layout:
        """The options as readers take them."""
        split: Literal["lines", "blank-lines"] = "lines" if self.one_per_line else "blank-lines"
        divided = self.one_per_line or self.by_blank_line
        return Layout(self.text_column, self.id_column, self.title_column, split if divided else None)

    def read(self, path: str, strict: bool = True) -> Stories:
        """Read the stories of a file, folder or standard input, and print their number and how they were read.

        Raises:
            DataError: as `read_stories` does.
        """
        stories = read_stories(path, strict, layout=self.layout)
        say(stories.report.summary())
        return stories


@dataclass(frozen=True)
class TextOptions:
    """Options of reading stories.

    Attributes:
        views: file of stories' views (text, theme, plot_events or course_of_action, outcome), or several with commas
            between.
        missing_views: stories without views are refused, or get views cut by position.
        pseudonymize: replace names by placeholders, found by spaCy.
        scope: texts that share a mapping of names.
        pipeline: name or folder of the spaCy pipeline.
        coref: link names by coreference clusters (fastcoref).
        coref_model: hub id or folder of the F-coref model.
    """

    views: str | None = None
    missing_views: Literal["refuse", "positional"] = "refuse"
    pseudonymize: bool = False
    scope: Scope = "story"
    pipeline: str = PseudonymOptions.pipeline
    coref: bool = False
    coref_model: str = PseudonymOptions.coref_model

    def __post_init__(self) -> None:
        if not self.pseudonymize and self.pseudonyms != PseudonymOptions():
            raise OptionError("--scope, --pipeline, --coref and --coref-model need --pseudonymize")

    @property
    def reads_views(self) -> bool:
        """Stories have views."""
        return self.views is not None or self.missing_views != "refuse"

    @property
    def pseudonyms(self) -> PseudonymOptions:
        """Settings of pseudonymization."""
        backend: Literal["spacy", "none"] = "spacy" if self.pseudonymize else "none"
        return PseudonymOptions(backend, self.scope, self.pipeline, self.coref, self.coref_model)

    def stories(self, stories: Stories) -> list[Story]:
        """Prepare stories for the model: attach their views, replace their names.

        Raises:
            DataError: for a story without views where they are needed.
            OptionError: for a mapping of names that a triple shares.
        """
        result = self._prepared(stories)
        self._embedded.extend(result)
        return result

    def triples(self, triples: Triples) -> Triples:
        """Prepare triples for the model, as `stories` does."""
        return self.triples_and_views(triples)[0]

    def triples_and_views(self, triples: Triples) -> tuple[Triples, dict[str, Any] | None]:
        """Prepare triples, and describe for records where their views come from; None where none are read."""
        views = self._attach_views(triples.stories, triples.indices.ravel().tolist(), "triples")
        if not self.pseudonymize:
            self._embedded.extend(triples.stories)
            return triples, views
        groups = [tuple(triples.stories[index] for index in triple.indices) for triple in triples]
        if self.scope == "triple":
            changed = self._pseudonymized(groups)
        else:
            singles = iter(self._pseudonymized([(story,) for group in groups for story in group]))
            changed = [[next(singles)[0] for _ in group] for group in groups]
        table, rows = StoryTable(), []
        for triple, group in zip(triples, changed, strict=True):
            anchor, a, b = (table.add(story.text, views=story.views, original=story.original) for story in group)
            rows.append(Triple(anchor, a, b, triple.a_is_closer))
        self._embedded.extend(table)
        return Triples(table, rows, triples.report), views

    def record(self) -> dict[str, Any]:
        """Settings that differ from reading stories as they are, as plain data."""
        views = {"views": self.views, "missing_views": self.missing_views} if self.reads_views else {}
        return views | ({"pseudonyms": asdict(self.pseudonyms)} if self.pseudonymize else {})

    @cached_property
    def _embedded(self) -> list[Story]:
        """Stories that were prepared for the model so far."""
        return []

    def _prepared(self, stories: Stories) -> list[Story]:
        self._attach_views(stories.table, stories.rows, "stories")
        if not self.pseudonymize:
            return list(stories)
        if self.scope == "triple":
            raise OptionError("--scope triple needs triples: a story must not depend on others; use --scope story")
        return [story for (story,) in self._pseudonymized([(story,) for story in stories])]

    def _attach_views(self, table: StoryTable, indices: Sequence[int], name: str) -> dict[str, Any] | None:
        if not self.reads_views:
            return None
        views = StoryViews(ViewFiles.parse(self.views, self.missing_views))
        say(f"views: {views.summary()}")
        say(views.attach(table, indices, name).summary(name))
        return views.provenance()

    def _pseudonymized(self, groups: Sequence[Sequence[Story]]) -> list[list[Story]]:
        """Replace the names in stories and their views; the stories of a group share one mapping."""
        texts = [
            tuple(text for story in group for text in (story.text, *(story.views.texts if story.views else ())))
            for group in groups
        ]
        different = list(dict.fromkeys(texts))
        results = pseudonymize_texts(different, self.pseudonyms, lead=self.scope == "story")
        done = {old: [new.text for new in result] for old, result in zip(different, results, strict=True)}
        changed = []
        for group, old in zip(groups, texts, strict=True):
            new = iter(done[old])
            changed.append(
                [
                    Story(s.id, next(new), Views(next(new), next(new), next(new)) if s.views else None, s.text)
                    for s in group
                ]
            )
        return changed


@dataclass(frozen=True)
class StoryOptions(TextOptions):
    """Options of the stories that a model reads.

    Attributes:
        fusion: weights of text, theme, action and outcome with commas between, or a preset: submitted, equal,
            full_only, higher_theme, action_only; a model of views has its own.
        postprocess: steps over the embeddings, with commas between: center, abtt:K (all but the K first components),
            whiten, truncate:N (the first N dimensions).
        fit_on: file of stories that the steps are fitted on, or several with commas between; none of the embedded ones.
        transductive: fit the steps on the embedded stories, or on a file with some of them; what results is no
            submission to Track B, and is flagged.
    """

    fusion: str | None = None
    postprocess: str | None = None
    fit_on: str | None = None
    transductive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fusion is not None:
            parse_fusion(self.fusion)
        fits = self.fit_on is not None or self.transductive
        if self.postprocess is None and fits:
            raise OptionError("--fit-on and --transductive need --postprocess STEPS")
        if any(name != "truncate" for name, _ in parse_steps(self.postprocess or "truncate:1")) and not fits:
            raise OptionError(
                f"--postprocess {self.postprocess}: give --fit-on FILE, stories other than those embedded"
            )

    def encoder(self, use: ModelOptions) -> "Encoder":
        """Load the model, with fusion of views and post-processing if wanted; warn if it was trained on pseudonyms.

        Raises:
            OptionError: if views are given to a model that reads none, or as `postprocessed` does.
        """
        from narrlit.models.registry import pseudonyms_of, with_fusion

        model = str(use.model)
        encoder = with_fusion(use.load_named(model), None if self.fusion is None else parse_fusion(self.fusion))
        if self.reads_views and encoder.reads != "views":
            raise OptionError("this model reads no views: give --fusion, such as submitted, or leave --views out")
        with reading("run record of", model, error=ModelError):
            trained = pseudonyms_of(model)
            if trained and trained["backend"] != "none" and not self.pseudonymize:
                say(
                    f"warning: {model} was trained on stories with placeholders for names, unlike those read here; add "
                    f"--pseudonymize (--scope {trained['scope']} for triples)"
                )
        return self.postprocessed(encoder)

    def postprocessed(self, encoder: "Encoder") -> "Encoder":
        """Fit the post-processing, if any, and attach it; the stories to embed are prepared before.

        Raises:
            OptionError: for steps that the stories are too few for, or embedded stories without --transductive.
        """
        if self.postprocess is None:
            return encoder
        import torch
        from sentence_transformers.models import Dense

        from narrlit.models.embedding import embed

        encoder.require_one_prompt("--postprocess")
        files, used, record = self._fitted_on()
        for file in files:
            say(file.report.summary())
        prepared = [story for file in files for story in self._prepared(file)] or self._embedded
        stories = {text: s for s in prepared if (text := normal_text(s.source_text)) in used}
        steps, vectors = parse_steps(self.postprocess), np.empty((0, encoder.dimension), np.float32)
        if stories:
            vectors = embed(encoder, list(stories.values())).embeddings
        fitted = fit_steps(steps, vectors)
        weight, bias = (torch.from_numpy(values).float().contiguous() for values in (fitted.weight, fitted.bias))
        encoder.postprocess(Dense(*reversed(weight.shape), True, torch.nn.Identity(), weight, bias))
        left_out = f"; left out {record['left_out']} that are embedded here" if record["left_out"] else ""
        shrunk = "" if fitted.shrinkage is None else f"; covariance shrunk by {fitted.shrinkage:.2f}"
        say(f"post-processing {self.postprocess}: fitted on {len(stories)} different stories{left_out}{shrunk}")
        if record["embedded"]:
            say(f"warning: transductive: {record['embedded']} of these stories are embedded here")
        return encoder

    def steps(self, encoder: "Encoder") -> list[tuple[str, Callable[[Any], Any]]]:
        """Return the named steps of a batch of stories, from those of a file to vectors, for `check_independence`."""
        from narrlit.models.embedding import embed

        steps: list[tuple[str, Callable[[Any], Any]]] = []
        if self.reads_views:
            views = StoryViews(ViewFiles.parse(self.views, self.missing_views))

            def attach(stories: Sequence[Story]) -> list[Story]:
                """Give stories their views."""
                table = StoryTable(stories)
                views.attach(table, range(len(table)), "stories")
                return table.rows

            steps.append(("views", attach))
        if self.pseudonymize:
            name = f"pseudonymization with --scope {self.scope}"
            steps.append((name, lambda stories: [s for (s,) in self._pseudonymized([(s,) for s in stories])]))
        transductive = bool(self.record().get("transductive"))

        def vectors(stories: Sequence[Story]) -> FloatArray:
            """Embed stories, without the post-processing where that is a step of its own."""
            post, encoder.post = encoder.post, None if transductive else encoder.post
            embeddings = embed(encoder, stories, progress=False).embeddings
            encoder.post = post
            return embeddings

        steps.append(("the encoder", vectors))
        if transductive:
            fit = partial(fit_steps, parse_steps(str(self.postprocess)))
            steps.append(("post-processing fitted on the batch", lambda batch: fit(batch)(batch)))
        return steps

    def _fitted_on(self) -> tuple[list[Stories], set[str], dict[str, Any]]:
        """Files of --fit-on, normalized texts of the stories that the steps are fitted on, and provenance."""
        paths = [path.strip() for path in (self.fit_on or "").split(",") if path.strip()]
        files = [read_any(path) for path in paths]
        embedded = {normal_text(story.source_text) for story in self._embedded}
        texts = {normal_text(story.text) for file in files for story in file}
        texts = embedded if self.transductive and not paths else texts
        used = texts if self.transductive else texts - embedded  # official files share stories: the others serve
        if 2 * len(used) < len(texts):
            raise OptionError(
                f"--fit-on {self.fit_on}: {len(texts) - len(used)} of its {len(texts)} stories are those embedded; "
                "name other stories, or add --transductive, which flags the result"
            )
        record = {
            "steps": self.postprocess,
            "fit_on": [{"path": path, "sha256": file_digest(path)} for path in paths],
            "stories": len(used),
            "sha256": sha256("\n".join(sorted(used)).encode()).hexdigest(),
            "left_out": len(texts - used),
            "embedded": len(used & embedded),
        }
        return files, used, record

    def record(self) -> dict[str, Any]:
        """Settings that differ from reading stories as they are, with what post-processing is fitted on."""
        record = super().record() | ({} if self.fusion is None else {"fusion": self.fusion})
        if self.postprocess is None:
            return record
        fitted = self._fitted_on()[-1]
        return record | {"postprocess": fitted, "transductive": fitted["embedded"] > 0}


@dataclass(frozen=True)
class LabelOptions:
    """Options of reading labeled triples.

    Attributes:
        labels: file of text_a_is_closer, where labels are in a file of their own.
        strict: refuse the first invalid row, instead of dropping and counting it.
    """

    labels: str | None = None
    strict: bool = False

    def read(self, triples: str) -> Triples:
        """Read the triples of a file, each with its label, and print their number.

        Raises:
            DataError: if a file can't be read.
            OptionError: if a triple has no label.
        """
        result = read_triples(triples, labels=self.labels, strict=self.strict)
        unlabeled = int((result.labels < 0).sum())
        if unlabeled:
            rows = f"{unlabeled} {'row' if unlabeled == 1 else 'rows'} without a label"
            if self.labels is None:
                raise OptionError(f"{triples} has {rows}: give --labels FILE")
            raise OptionError(f"{self.labels} has {rows}: write true or false in each")
        say_rows(result)
        return result


@dataclass(frozen=True)
class SubmissionOptions:
    """Options of scoring vectors and submissions on labeled triples.

    Attributes:
        stories: file whose row i is the story of vector i, for .npy files and submissions.
        track: track of the shared task that the triples are of, by which a submission answers; by default b, its
            vectors, where --stories has every story of the triples, and a, its answers, where it lacks one.
    """

    stories: str | None = None
    track: Track | None = None


def seen_in_training(model: str, sha256: str) -> str | None:
    """Find in the record of a model's run why its accuracy on triples is no result; None where it is one.

    Args:
        model: as a user names it; the record is that of the run folder, or of a checkpoint's run.
        sha256: of the file of triples.

    Raises:
        ModelError: if the record is broken.
    """
    from narrlit.models.registry import find_record, read_record

    path = find_record(model)
    if path is None:
        return None
    with reading("run record", path, "name a checkpoint in another folder", ModelError):
        record = read_record(path)
        data = record.get("data") or {}
        trained, validated = (
            {file["sha256"]: file["path"] for file in (data.get(stage) or {}).get("files", [])}
            for stage in ("train", "validation")
        )
        flagged = (record.get("flags") or {}).get("trained_on_validation", False)
    file = trained.get(sha256) or (validated.get(sha256) if flagged else None)
    if file is not None:
        return f"trained on these triples: no result ({path.parent.name} trained on {file})"
    if flagged:
        names = ", ".join(validated.values()) or "unnamed"
        return f"trained on triples that it was validated by ({names}): no result where these are among them"
    return None
