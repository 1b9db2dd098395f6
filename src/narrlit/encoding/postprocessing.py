"""Post-processing of embeddings: its steps, and the stories on which they are fitted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path

from narrlit.console import say
from narrlit.data.readers import read_any
from narrlit.data.rows import file_digest
from narrlit.data.schema import Story, normal_text
from narrlit.errors import OptionError
from narrlit.models.config import parse_steps


@dataclass(frozen=True)
class PostprocessingFit:
    """Post-processing steps with the stories on which they are fitted.

    Attributes:
        steps: post-processing steps, as in `narrlit.load`.
        stories: distinct stories on which the steps are fitted.
        embedded: normalized texts of the stories that are embedded.
        record: origin of the stories and number of excluded ones, as plain data.
    """

    steps: str
    stories: Sequence[Story]
    embedded: frozenset[str]
    record: dict[str, object]

    @property
    def is_transductive(self) -> bool:
        """True if the steps are fitted on stories that are embedded."""
        return bool(self.record["embedded"])


@dataclass(frozen=True)
class Postprocessing:
    """Post-processing steps, and the files and stories on which they are fitted.

    Attributes:
        steps: comma-separated steps: center, abtt:K (remove the first K principal components), whiten, truncate:N (keep
            the first N dimensions).
        files: files of stories on which the steps are fitted.
        stories: additional stories on which the steps are fitted.
        transductive: also fit on the embedded stories; only on these, if no others are given.
    """

    steps: str
    files: tuple[str, ...] = ()
    stories: tuple[Story, ...] = ()
    transductive: bool = False

    def __post_init__(self) -> None:
        if self.is_fitted and not (self.files or self.stories or self.transductive):
            raise OptionError("fit_on_needed", steps=self.steps)

    @property
    def is_fitted(self) -> bool:
        """True if a step is fitted on stories; `truncate` alone is not."""
        return any(name != "truncate" for name, _ in parse_steps(self.steps))

    def fit_for(self, embedded: Iterable[Story]) -> PostprocessingFit:
        """Choose the stories on which the steps are fitted, given the embedded stories.

        Raises:
            OptionError: if most of the stories are among those embedded, and the fit is not transductive.
        """
        available = self._available()
        embedded_by_text = {normal_text(story.source_text): story for story in embedded}
        if self.transductive:
            chosen = available or embedded_by_text
        else:  # the official files share some stories: leave these out
            chosen = {text: story for text, story in available.items() if text not in embedded_by_text}
        if 2 * len(chosen) < len(available):
            raise OptionError("fit_on_embedded", n=len(available) - len(chosen), stories=len(available))
        files = [{"path": path, "sha256": file_digest(path)} for path in self.files]
        record = {
            "steps": self.steps,
            "fit_on": files,
            "stories": len(chosen),
            "sha256": sha256("\n".join(sorted(chosen)).encode()).hexdigest(),
            "left_out": len(available.keys() - chosen.keys()),
            "embedded": len(chosen.keys() & embedded_by_text.keys()),
        }
        return PostprocessingFit(self.steps, list(chosen.values()), frozenset(embedded_by_text), record)

    def _available(self) -> dict[str, Story]:
        """Read the distinct stories that are given for the fit, by their normalized text."""
        files = [read_any(path) for path in self.files]
        for file in files:
            say(file.report.summary())
        available: dict[str, Story] = {}
        for story in chain(self.stories, *files):
            available.setdefault(normal_text(story.source_text), story)
        return available


def postprocessing_of(
    steps: str | None, fit_on: str | Path | Sequence[str] | Sequence[Story], transductive: bool
) -> Postprocessing | None:
    """Build the settings of post-processing from the parameters of `load`; None if there are no steps."""
    if steps is None:
        if fit_on or transductive:
            raise OptionError("fit_on_needs_postprocess")
        return None
    if isinstance(fit_on, str | Path):
        files = [part.strip() for part in str(fit_on).split(",") if part.strip()]
        return Postprocessing(steps, tuple(files), transductive=transductive)
    paths: list[str] = []
    stories: list[Story] = []
    for item in fit_on:
        if isinstance(item, Story):
            stories.append(item)
        else:
            paths.append(str(item))
    return Postprocessing(steps, tuple(paths), tuple(stories), transductive)
