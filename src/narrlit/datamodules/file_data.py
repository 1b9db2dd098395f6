"""FileData: training examples and triples from files, optionally with views."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lightning_utilities.core.rank_zero import rank_zero_info

from narrlit.data.readers import ReadReport, read_examples, read_stories, read_triples
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples, Triples
from narrlit.data.views import StoryViews, ViewFiles
from narrlit.datamodules.hard_examples import HardExampleSampling
from narrlit.datamodules.loaders import LoaderOptions
from narrlit.datamodules.provenance import Provenance
from narrlit.datamodules.pseudo_labels import PseudoLabels
from narrlit.datamodules.story_data import Stage, StoryData
from narrlit.datamodules.story_versions import VersionSampling, read_versions
from narrlit.errors import OptionError


@dataclass(frozen=True)
class Extra:
    """Additional files, which are separate so that a system can be compared with and without them.

    Attributes:
        synthetic: training examples written by a language model, used in the same way as others.
        unlabelled: stories without labels, used only for transductive pseudo-labels.
    """

    synthetic: str | list[str] | None = None
    unlabelled: str | list[str] | None = None


class FileData(StoryData):
    """Training examples and triples from files in any format that the readers support.

    With `views`, the anchors of training examples and all stories of triples need views. Positives and negatives of
    training examples do not need them, because objectives with views are trained on anchors only.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (a config's keys)
        self,
        train: str | list[str] | None = None,
        validation: str | None = None,
        validation_labels: str | None = None,
        test: str | None = None,
        test_labels: str | None = None,
        predict: str | None = None,
        extra: Extra = Extra(),
        versions: VersionSampling = VersionSampling(),
        views: ViewFiles = ViewFiles(),
        hard_examples: HardExampleSampling = HardExampleSampling(),
        pseudo_labels: PseudoLabels = PseudoLabels(),
        loading: LoaderOptions = LoaderOptions(),
        validation_share: float = 1.0,
    ) -> None:
        """Set the files and their use.

        Args:
            train: file of training examples or labeled triples, or several such files.
            validation: file of labeled triples, evaluated after every epoch.
            validation_labels: labels of the validation triples, if they are in a separate file.
            test: file of labeled triples, evaluated by `narrlit test`.
            test_labels: labels of the test triples, if they are in a separate file.
            predict: file of triples, with or without labels.
            extra: synthetic training examples and unlabeled stories.
            versions: stories with several versions, which become each other's positives.
            views: views of the stories, for objectives that read them.
            hard_examples: sampling of hard examples.
            pseudo_labels: pseudo-labels of the training stories' aspects.
            loading: batch sizes and further settings of data loading.
            validation_share: share of the validation triples to evaluate, above 0 and at most 1. They are selected at
                random, in the same way in every run. The others are not used, except by
                `hard_examples.mine_validation`.

        Source:
            `validation_share`: Comhis, section 4.3, which evaluates on a subset of the development data without stating
            its size.
        """
        if not 0 < validation_share <= 1:
            raise OptionError("validation_share", share=validation_share)
        super().__init__(loading, hard_examples, pseudo_labels)
        self.validation_share = validation_share
        self.train = _listed(train)
        self.extra = extra
        self.versions = versions
        self.setting_share = versions.setting_share
        self.views = views
        self.has_views = bool(views.paths) or views.missing == "positional"
        self.has_unlabelled = bool(_listed(extra.unlabelled))
        self.files: dict[Stage, str | None] = {"validation": validation, "test": test, "predict": predict}
        self.labels: dict[Stage, str | None] = {"validation": validation_labels, "test": test_labels}
        self._story_views: StoryViews | None = None

    def read_examples(self, stories: StoryTable) -> TrainingExamples:
        """Read the training files."""
        strict = self.loading.strict
        train = [read_examples(path, strict, stories) for path in self.train]
        synthetic = [read_examples(path, strict, stories) for path in _listed(self.extra.synthetic)]
        versions = read_versions(self.versions, strict, stories)
        self.original_texts = versions.originals
        self.synthetic_rows = sum(map(len, synthetic))
        rows: list[TrainingExample] = [*versions.examples]
        reports = []
        for read in [*train, *synthetic]:  # synthetic examples come last
            rows += read
            reports.append(read.report)
        self._note_files("train", [*reports, *versions.reports])
        if versions.examples:
            rank_zero_info(versions.summary())
        examples = TrainingExamples(stories, rows)
        self._attach_views("train", stories, examples.anchors.tolist(), examples.story_indices.tolist())
        return examples

    def read_triples(self, stage: Stage, stories: StoryTable) -> Triples:
        """Read the triples of a stage; for predictions, which are in the order of the rows, no row may be dropped."""
        path = self.files[stage]
        if path is None:
            return Triples(stories, [])
        strict = self.loading.strict or stage == "predict"
        triples = read_triples(path, self.labels.get(stage), strict, stories)
        self._note_files(stage, [triples.report])
        self._attach_views(stage, stories, triples.indices.ravel().tolist())
        return triples

    def read_unlabelled(self, stories: StoryTable) -> list[int]:
        """Read the unlabeled stories."""
        indices: list[int] = []
        reports = []
        for path in _listed(self.extra.unlabelled):
            unlabeled = read_stories(path, self.loading.strict, stories)
            indices += unlabeled.rows
            reports.append(unlabeled.report)
        self._note_files("unlabelled", reports)
        return list(dict.fromkeys(indices))

    def _attach_views(self, name: str, stories: StoryTable, needed: list[int], optional: Sequence[int] = ()) -> None:
        if not self.has_views or not needed:
            return
        if self._story_views is None:
            self._story_views = StoryViews(self.views, self.loading.strict)
            rank_zero_info(f"views: {self._story_views.summary()}")
        coverage = self._story_views.attach(stories, needed, name, optional)
        rank_zero_info(coverage.summary(name))
        views = {**self._story_views.provenance(), "positional": coverage.positional}
        self.note(name, replace(self.noted(name), views=views))

    def _note_files(self, name: str, reports: Sequence[ReadReport | None]) -> None:
        files = []
        for report in reports:
            if report is not None:
                rank_zero_info(report.summary())
                files.append(report.provenance())
        self.note(name, Provenance(files=files))


def _listed(files: str | list[str] | None) -> list[str]:
    return [files] if isinstance(files, str) else list(files or [])
