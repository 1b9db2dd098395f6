"""`narrlit.evaluate` and `narrlit.compare`: accuracy of one system, and of several, on labeled triples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isinf
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from narrlit.console import say, say_truncated
from narrlit.data.readers import read_labeled_triples
from narrlit.data.rows import file_digest
from narrlit.data.schema import Track, TrainingExamples, Triples, example_of
from narrlit.data.splits import story_groups, story_numbers
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.board import board_rows
from narrlit.experiments.combinations import ORACLE, combine
from narrlit.experiments.facets import FACETS, FacetValues, bin_values, margin_quartiles, read_facets
from narrlit.experiments.options import ANSWER_SUFFIXES
from narrlit.experiments.systems import SEEN, System, SystemAnswers, answer_rows, answers_of
from narrlit.measures import EncoderSimilarity, MeanMaxSimilarity, Similarity, measure_of
from narrlit.models.config import DEFAULT_MODEL
from narrlit.results import Estimate, Note, Result, Row, adjusted, difference
from narrlit.statistics.significance import LEVEL, SharedStories, smallest_difference
from narrlit.statistics.words import stop_words_text


def evaluate(
    triples: str | Path | Triples,
    system: System = DEFAULT_MODEL,
    *,
    labels: str | Path | None = None,
    strict: bool = False,
    progress: bool = False,
) -> Result:
    """Evaluate a system on labeled triples, as SemEval-2026 Task 4 does; a tie counts as B.

    Args:
        triples: a file of labeled triples (JSON Lines, CSV), or triples as `read_triples` returns them.
        system: a model (run, folder, checkpoint, hub id, `minilm`), an encoder from `narrlit.load`, a measure of
            `narrlit.measures`, or a baseline: `random`, `jaccard`, `tfidf`, `bm25`, `longer`.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        A `Result` with one figure, `.estimate()`, and the answers, `.answers`. It is printed as
        `minilm: accuracy 0.550 [0.481, 0.617], n = 200`.

    Raises:
        DataError: if the triples can't be read, or one has no label.
        ModelError: if the model can't be loaded.

    >>> from narrlit.data.readers import read_triples
    >>> row = '{"anchor_text": "A knight seeks a grail.", "text_a": "A knight seeks a cup.", "text_b": "A bank opens."'
    >>> path = getfixture("tmp_path") / "triples.jsonl"
    >>> _ = path.write_text(row + ', "text_a_is_closer": true}')
    >>> print(evaluate(path, "jaccard"))
    jaccard: accuracy 1.000 [0.207, 1.000], n = 1
    Intervals are 95 % (Wilson) and assume independent items.
    """
    labeled = read_labeled_triples(triples, labels, strict=strict, progress=progress)
    if not isinstance(system, str | PathLike) or Path(system).suffix not in ANSWER_SUFFIXES:
        system = measure_of(system).fitted_for(labeled.stories)
    answers = answers_of(system, labeled, progress=progress)
    if SEEN in answers.flags:
        say(f"warning: {answers.name} was {answers.flags[SEEN]}")
    settings: dict[str, object] = {"model": answers.name}
    if labeled.report is not None:
        settings |= {"triples": str(labeled.report.path), "dropped": labeled.report.dropped}
    settings |= answers.settings
    if isinstance(system, Similarity):
        settings |= _settings_of(system, labeled, progress)
    return Result.of(
        "evaluate",
        [answers.figure()],
        answers=answer_rows([answers], labeled),
        settings=settings,
        notes=_circumstances([answers]),
    )


def compare(  # noqa: PLR0913 (options)
    triples: str | Path | Triples,
    systems: Mapping[str, System] | Sequence[System],
    *,
    by: Sequence[str] = (),
    labels: str | Path | None = None,
    strict: bool = False,
    stories: str | Path | None = None,
    track: Track | None = None,
    board: Track | None = None,
    progress: bool = False,
) -> Result:
    """Compare systems with the first one, on the same labeled triples, by paired tests.

    Args:
        triples: a file of labeled triples (JSON Lines, CSV), or triples as `read_triples` returns them.
        systems: systems as for `evaluate`, optionally by name; or files: answers (.jsonl, .csv, .tsv), embeddings
            (.npy) and submissions (.zip).
        by: breakdowns of the accuracy: by quartile of `overlap` (of words), `length` or `margin`, or by a column of the
            file of triples.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        stories: file of the embedded stories, in the same order as the embeddings of an .npy file or a submission.
        track: track of the triples; a submission is scored by its Track A answers (`a`) or its Track B embeddings
            (`b`); None: `b` if `stories` contains every story of the triples, else `a`.
        board: track of SemEval-2026 Task 4 whose teams the systems are placed among (`a`, `b`); the triples must be its
            400 test triples.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        A `Result`: accuracies of the systems, of their combinations and by subset, the share of equal answers, and
        differences to the first system. Its notes begin with the conclusion.

    Raises:
        DataError: if a file can't be read or belongs to other triples.
        ModelError: if a model can't be loaded.
        OptionError: if no system is given, a system is given twice, or a triple has no label.

    >>> row = '{"anchor_text": "A knight seeks a grail.", "text_a": "A knight seeks a cup.", "text_b": "A bank opens."'
    >>> path = getfixture("tmp_path") / "triples.jsonl"
    >>> _ = path.write_text(row + ', "text_a_is_closer": true}')
    >>> compare(path, ["jaccard", "longer"]).table()[["system", "metric", "value", "n"]].head(2)
        system    metric  value  n
    0  jaccard  accuracy    1.0  1
    1   longer  accuracy    1.0  1
    """
    labeled = read_labeled_triples(triples, labels, strict=strict, progress=progress)
    named = named_systems(systems)
    facets = read_facets(by, labeled)
    answers = answers_of_all(named, labeled, stories=stories, track=track, progress=progress)
    settings: dict[str, object] = {"triples": {"n": len(labeled)}}
    if labeled.report is not None:
        path = str(labeled.report.path)
        settings["triples"] = {"path": path, "sha256": file_digest(path), "n": len(labeled)}
    settings["reading"] = _reading(named.values())
    return compare_answers(answers, labeled, facets, settings, board)


def answers_of_all(
    systems: Mapping[str, System],
    labeled: Triples,
    *,
    stories: str | Path | None = None,
    track: Track | None = None,
    progress: bool = False,
) -> list[SystemAnswers]:
    """Return the answers of named systems to labeled triples; see `answers_of`."""
    answers = []
    for name, system in systems.items():
        answers.append(answers_of(system, labeled, name=name, stories=stories, track=track, progress=progress))
    return answers


def compare_answers(
    systems: Sequence[SystemAnswers],
    labeled: Triples,
    facets: Mapping[str, FacetValues | None],
    settings: Mapping[str, object],
    board: Track | None = None,
) -> Result:
    """Compare the answers of systems to N labeled triples with those of the first one.

    Args:
        systems: one or more systems.
        labeled: the triples.
        facets: values of the triples by name, from `read_facets`.
        settings: settings that determine the answers.
        board: track of SemEval-2026 Task 4 whose teams the systems are placed among.
    """
    stories = story_numbers(labeled)
    shared = SharedStories(stories)
    systems = [replace(system, stories=stories) for system in systems]
    first, *others = systems
    figures = [system.figure() for system in systems]
    differences = [_difference(other, first, shared) for other in others]
    notes = [*_conclusions(systems, differences, shared), *_shared_notes(shared), *_circumstances(systems)]

    groups = story_groups(TrainingExamples(labeled.stories, [example_of(triple) for triple in labeled]))
    combined = [system for system in systems if system.kind != "baseline"]
    combinations, weights = combine(combined, groups)
    names = [system.name for system in combined]
    for combination in combinations:
        figures.append(combination.figure(subset="combinations"))
        if combination.name == ORACLE:  # an upper bound, for which a test would be meaningless
            notes.append(Note.of("oracle", systems=names))
        else:
            differences.append(_difference(combination, first, shared, "combinations"))
    if weights:
        by_fold = "; ".join(", ".join(f"{weight:g}" for weight in of_fold) for of_fold in weights)
        notes.append(Note.of("weighted_mean", systems=names, weights=by_fold))

    for facet, values in facets.items():
        figures += _facet_figures(systems, facet, values)
        if facet in FACETS:
            notes.append(Note.of(f"by_{facet}"))
    if others:
        figures += _agreement(systems)
    if board is not None:
        placed = board_rows({system.name: system.estimate for system in systems}, board)
        figures, differences, notes = figures + placed.figures, differences + placed.differences, notes + placed.notes
    sharing = {"groups": len(np.unique(groups)), "triples_sharing_stories": shared.num_sharing}
    return Result.of(
        "compare",
        figures,
        differences,
        answers=answer_rows(systems, labeled),
        settings={**settings, **sharing, "weights_by_fold": weights},
        notes=notes,
    )


def _difference(system: SystemAnswers, first: SystemAnswers, shared: SharedStories, subset: str = "all") -> Row:
    """Compare a system with the first one."""
    return difference(system.correct, first.correct, shared).row(system.name, first.name, subset=subset)


def _facet_figures(systems: Sequence[SystemAnswers], facet: str, values: FacetValues | None) -> list[Row]:
    """Compute accuracies by the bins of a facet; without values, by the quartiles of each system's margin."""
    figures = []
    for system in systems:
        if values is not None:
            bins = bin_values(values)
        elif system.margin is not None:
            bins = margin_quartiles(system.margin)
        else:
            continue
        for number, name in enumerate(bins.names):
            in_bin = np.flatnonzero(bins.numbers == number)
            figures.append(system.figure(in_bin, f"{facet}: {name}"))
    return figures


def _agreement(systems: Sequence[SystemAnswers]) -> list[Row]:
    """Compute the share of equal answers of each pair of systems."""
    figures = []
    for other in systems:
        for system in systems:
            share = float((system.answers == other.answers).mean())
            agreement = Estimate(share, np.nan, np.nan, len(system.answers))
            figures.append(agreement.row(system.name, "same answers", f"same answers: {other.name}"))
    return figures


def _conclusions(systems: Sequence[SystemAnswers], differences: Sequence[Row], shared: SharedStories) -> list[Note]:
    """Say which systems are better or worse than the first, and how large a difference the others would need.

    >>> labels = np.ones(200, dtype=bool)
    >>> minilm = SystemAnswers("minilm", "model", labels, np.arange(200) < 110)
    >>> other = SystemAnswers("other", "model", labels, np.arange(200) >= 78)
    >>> independent = SharedStories([[n] for n in range(200)])
    >>> print(*_conclusions([minilm, other], [_difference(other, minilm, independent)], independent))
    other: a difference to minilm cannot be shown at n = 200; about 14 points would be needed.
    """
    first, *others = systems
    if others and first.is_trained_on_triples:
        return [Note.of("against_no_result", against=first.name)]
    compared = dict(zip(others, adjusted(differences), strict=True))
    num_undecided = sum(row["p_adjusted"] >= LEVEL for row in compared.values())  # also trained on the triples
    better: list[str] = []
    worse: list[str] = []
    trained: list[str] = []
    undecided: list[Row] = []
    for system, row in compared.items():
        if system.is_trained_on_triples:
            trained.append(system.name)
        elif row["p_adjusted"] >= LEVEL:
            undecided.append(row)
        else:
            (better if row["value"] > 0 else worse).append(system.name)
    notes = []
    if better:
        notes.append(Note.of("better", systems=better, against=first.name))
    if worse:
        notes.append(Note.of("worse", systems=worse, against=first.name))
    if undecided:
        # Holm compares the smallest remaining p with the level divided by the number of remaining comparisons.
        points = _points_needed(undecided, LEVEL / num_undecided, shared)
        names = [row["system"] for row in undecided]
        about = {"systems": names, "against": first.name, "n": len(first.answers)}
        notes.append(Note.of("undecided", **about, points=points) if points else Note.of("undecidable", **about))
    if trained:
        notes.append(Note.of("no_result", systems=trained))
    return notes


def _points_needed(differences: Sequence[Row], level: float, shared: SharedStories) -> str:
    """Compute how large differences must be, in points, for p to be below a level; empty if no difference suffices."""
    if shared.num_sharing and not shared.degrees_of_freedom:
        return ""
    points = []
    for row in differences:
        discordance = (row["lost"] + row["won"]) / row["n"]
        dependence = () if row["design_effect"] is None else (row["design_effect"], shared.degrees_of_freedom)
        points.append(100 * smallest_difference(row["n"], discordance, level, *dependence))
    possible = [value for value in points if not isinf(value)]
    if not possible:
        return ""
    least, most = f"{min(possible):.3g}", f"{max(possible):.3g}"
    return least if least == most else f"{least} to {most}"


def _shared_notes(shared: SharedStories) -> list[Note]:
    """Say how many triples share stories, and what this means for intervals and tests."""
    counts = {"sharing": shared.num_sharing, "n": shared.num_triples}
    if not shared.num_sharing:
        return []
    if not shared.degrees_of_freedom:
        return [Note.of("too_many_shared_stories", **counts)]
    return [Note.of("shared_stories", **counts, degrees=shared.degrees_of_freedom)]


def _circumstances(systems: Sequence[SystemAnswers]) -> list[Note]:
    """Say what accuracies depend on: training on the triples, transductive post-processing, ties and stop words."""
    notes = []
    for system in systems:
        if SEEN in system.flags:
            notes.append(Note.of("seen_in_training", system=system.name, reason=system.flags[SEEN]))
    transductive = [system.name for system in systems if system.flags.get("transductive")]
    if transductive:
        notes.append(Note.of("transductive", systems=transductive))
    tied = [system for system in systems if system.ties.any()]
    if tied:
        names = [system.name for system in tied]
        notes.append(Note.of("ties", n=sum(int(system.ties.sum()) for system in tied), systems=names))
    for system in systems:
        if "stop_words" in system.settings:  # the same for all baselines, which read the same stories
            return [*notes, Note.of("stop_words", words=stop_words_text(system.settings["stop_words"]))]
    return notes


def named_systems(systems: Mapping[str, System] | Sequence[System]) -> dict[str, System]:
    """Return systems by name; systems without a given name get their own.

    Raises:
        OptionError: if there are none, or two have the same name.
    """
    if not systems:
        raise OptionError("empty_list", option="systems")
    if isinstance(systems, Mapping):
        return dict(systems)
    named: dict[str, System] = {}
    for system in systems:
        name = fspath(system) if isinstance(system, str | PathLike) else system.name
        if name in named:
            raise OptionError("system_twice", name=name)
        named[name] = system
    return named


def _reading(systems: Iterable[System]) -> dict[str, object]:
    """Return how the first model reads stories: views, pseudonyms and windows; empty without a model."""
    for system in systems:
        encoder = getattr(system, "encoder", system)
        if isinstance(encoder, StoryEncoder):
            return encoder.about
    return {}


def _settings_of(similarity: Similarity, labeled: Triples, progress: bool) -> dict[str, object]:
    """Describe how stories were read and compared; print how long texts were read."""
    if not isinstance(similarity, EncoderSimilarity):
        return {}
    encoder = similarity.encoder
    facts, coverage = encoder.facts, encoder.coverage
    unit = similarity.units or facts.unit
    if not similarity.units and not facts.symmetric:  # a story with both roles counts twice
        unit = (f"{unit[0]} with its prompt", f"{unit[1]} with its prompt")
    if progress:
        say_truncated(coverage, facts.max_length, *unit)
        if isinstance(similarity, MeanMaxSimilarity):
            gamma = similarity.settings.gamma
            say(f"windows decided {similarity.aligned} of {len(labeled)} triples, with scores within {gamma}")
    how = {"model": encoder.name, "scorer": similarity.scorer, "long": encoder.loading.long}
    return {**how, **similarity.record, **coverage.record, **encoder.about}
