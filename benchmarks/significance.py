"""Error rates of the tests and intervals that take dependent triples or queries into account, by simulation.

Two systems answer triples of which some share stories. Each triple has a latent score for each system, and the system
is right where the score is above a threshold. The score's variance is 1: 0.35 of it is a difficulty that both systems
share, a part is the effect of the triple's stories on the system, and the rest is noise. Stories act in two ways:

- hard: a story makes all triples that it stands in harder, or easier, for a system;
- favored: a system likes a story, which is right where it is the closer candidate and wrong where it is the other.

False positives: share of simulations with p < .05 for two systems of accuracy .60. Power: the same for .60 and .68.

Groups: a mean over items of few groups, such as queries by tale type. Groups have one item or more (geometric, four on
average); the mean of each follows a Beta distribution, and its items are 0/1 or graded (Beta with the group's mean).
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm, t

from narrlit.data.readers import read_triples
from narrlit.data.splits import story_numbers
from narrlit.files import atomic_path
from narrlit.markdown import markdown_table
from narrlit.statistics.significance import (
    SharedStories,
    difference_interval,
    group_intervals,
    interval_by_story,
    mcnemar,
    mcnemar_by_story,
    wilson_interval,
)

Stories = NDArray[np.int64]
Right = NDArray[np.bool_]
Numbers = NDArray[np.float64]

LEVEL = 0.05
ACCURACY, BETTER = 0.60, 0.68
COMMON = 0.35
"""Variance of a triple's difficulty for both systems."""
RESAMPLES = 2000
EFFECTS = {"none": (0.0, 0.0), "hard, .3": (0.3, 0.0), "hard, .6": (0.6, 0.0), "favored, .6": (0.0, 0.6)}
"""Variances of the effects of a triple's stories, hard and favored."""
NUM_GROUPS = (5, 8, 12, 20, 60)
SHAPES = ((2.0, 2.0), (1.0, 3.0), (8.0, 1.0))
"""Parameters of the Beta distribution of the groups' means: symmetric, skewed, and near the upper bound."""
GROUP_RESAMPLES = 999
WEBB = np.sqrt([0.5, 1, 1.5]).repeat(2) * [1, -1, 1, -1, 1, -1]
"""Weights of the wild bootstrap, which has more than 2^G different samples of G groups (Webb 2023)."""


@dataclass(frozen=True)
class TestRow:
    """Error rates of a test.

    Attributes:
        triples: file or synthetic structure.
        n: number of triples.
        stories: effect of stories and its variance, a key of EFFECTS.
        test: name of the test.
        false_positives: share of simulations in which equal systems have p < .05.
        power: the same of systems that differ by 8 points.
        simulations: number of simulations for each of the two.
    """

    triples: str
    n: int
    stories: str
    test: str
    false_positives: float
    power: float
    simulations: int


@dataclass(frozen=True)
class IntervalRow:
    """Coverage of 95 % intervals.

    Attributes:
        triples: file or synthetic structure, or both sides of a difference.
        n: number of triples.
        stories: effect of stories, a key of EFFECTS.
        interval: name of the interval.
        coverage: share of simulations whose interval holds the true accuracy, or difference.
        width: mean width.
        simulations: number of simulations.
    """

    triples: str
    n: int
    stories: str
    interval: str
    coverage: float
    width: float
    simulations: int


@dataclass(frozen=True)
class GroupRow:
    """Coverage of 95 % intervals of a mean over items that are dependent within groups.

    Attributes:
        groups: number of groups.
        values: `0/1` or `graded`.
        shape: parameters of the Beta distribution of the groups' means.
        interval: name of the interval.
        coverage: share of simulations whose interval contains the true mean.
        width: mean width.
        simulations: number of simulations.
    """

    groups: int
    values: str
    shape: str
    interval: str
    coverage: float
    width: float
    simulations: int


def error_rates(
    files: Sequence[str] = (), simulations: int = 1000, seed: int = 0
) -> tuple[list[TestRow], list[IntervalRow]]:
    """Simulate all tests and intervals on the stories of files of triples, and on a synthetic structure.

    Args:
        files: triples, whose labels are not read.
        simulations: number of simulations of each row.
        seed: of all random numbers.
    """
    structures = {Path(file).name: story_numbers(read_triples(file)) for file in files} | {"synthetic": synthetic()}
    tests: list[TestRow] = []
    intervals: list[IntervalRow] = []
    for name, stories in structures.items():
        for effect in EFFECTS:
            generator = np.random.default_rng(seed)
            equal = simulate(stories, effect, ACCURACY, simulations, generator)
            better = simulate(stories, effect, BETTER, simulations, generator)
            of_equal, of_better = p_values(stories, *equal), p_values(stories, *better)
            for test, p in of_equal.items():
                false_positives, power = _share(p < LEVEL), _share(of_better[test] < LEVEL)
                tests.append(TestRow(name, len(stories), effect, test, false_positives, power, simulations))
            intervals += accuracy_intervals(name, stories, effect, equal[0])
            intervals += difference_intervals(name, effect, *equal)
    generator = np.random.default_rng(seed)
    for n, other_n in ((200, 200), (400, 400), (200, 40)):
        others = [generator.random((simulations, size)) < ACCURACY for size in (n, other_n)]
        intervals += difference_intervals(f"{n} triples, {other_n} others", "none", *others)
    return tests, intervals


def synthetic(n: int = 200) -> Stories:
    """Draw triples from 2.1 N stories, popular ones more often, so that most triples hang together."""
    generator = np.random.default_rng(0)
    count = int(2.1 * n)
    popularity = np.arange(1, count + 1) ** -0.5
    draws = [generator.choice(count, 3, replace=False, p=popularity / popularity.sum()) for _ in range(n)]
    return np.array(draws, dtype=np.int64)


def simulate(
    stories: Stories, effect: str, accuracy: float, simulations: int, generator: np.random.Generator
) -> tuple[Right, Right]:
    """Draw right answers (S, N) of a system of accuracy ACCURACY and of one of another accuracy."""
    hard, favored = EFFECTS[effect]
    shape = (simulations, len(stories))
    common = np.sqrt(COMMON) * generator.standard_normal(shape)
    closer_is_a = np.where(generator.random(shape) < 0.5, 1, -1)
    answers = []
    for mean in (ACCURACY, accuracy):
        hardness, favor = generator.standard_normal((2, simulations, stories.max() + 1))
        score = common + np.sqrt(1 - COMMON - hard - favored) * generator.standard_normal(shape)
        score += np.sqrt(hard / 3) * hardness[:, stories].sum(axis=-1)
        score += np.sqrt(favored / 2) * closer_is_a * (favor[:, stories[:, 1]] - favor[:, stories[:, 2]])
        answers.append(score > norm.isf(mean))
    return answers[0], answers[1]


def p_values(stories: Stories, first: Right, second: Right) -> Mapping[str, Numbers]:
    """Compute p (S,) of each test for answers (S, N) of two systems."""
    shared = SharedStories(stories)
    pairs = [*zip(first, second, strict=True)]
    differences = second.astype(np.float64) - first
    return {
        "McNemar": np.array([_mcnemar((y & ~x).sum(), (x & ~y).sum()) for x, y in pairs]),
        "by story": np.array([mcnemar_by_story(x, y, shared) for x, y in pairs]),
        "groups flipped": flipped_groups(stories, differences),
        "anchors resampled": resampled_anchors(stories, differences),
        "mixed model": mixed_model(stories, differences),
    }


@cache
def _mcnemar(won: int, lost: int) -> float:
    return mcnemar([True] * won + [False] * lost, [False] * won + [True] * lost)


def flipped_groups(stories: Stories, differences: Numbers) -> Numbers:
    """Permutation test that flips the signs of whole groups, of triples that shared stories link; p (S,)."""
    groups = connected_components(_sharing(stories), directed=False)[1]
    sums = differences @ np.eye(groups.max() + 1)[groups]
    signs = np.random.default_rng(0).choice([-1, 1], (RESAMPLES, sums.shape[1]))
    extreme = np.abs(sums @ signs.T) >= np.abs(sums.sum(axis=1, keepdims=True)) - 1e-9
    shares: Numbers = (extreme.sum(axis=1) + 1) / (RESAMPLES + 1)
    return shares


def resampled_anchors(stories: Stories, differences: Numbers) -> Numbers:
    """Bootstrap over anchors, by the normal approximation; p (S,)."""
    anchors = np.unique(stories[:, 0], return_inverse=True)[1]
    count = anchors.max() + 1
    weights = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)[:, anchors]
    means = differences @ weights.T / weights.sum(axis=1)
    p: Numbers = 2 * norm.sf(np.abs(differences.mean(axis=1)) / np.maximum(means.std(axis=1), 1e-12))
    return p


def mixed_model(stories: Stories, differences: Numbers) -> Numbers:
    """Linear mixed model with a random effect for each story, by restricted likelihood over a grid; p (S,) of Wald."""
    n = len(stories)
    eigenvalues, vectors = np.linalg.eigh(_incidence(stories).toarray() @ _incidence(stories).toarray().T)
    ones, rotated = vectors.T @ np.ones(n), differences @ vectors
    results = []
    for ratio in (0, *np.geomspace(0.005, 3, 40)):  # variance of a story's effect / of the noise
        precision = 1 / (1 + ratio * eigenvalues)
        information = float(precision @ ones**2)
        mean = rotated @ (ones * precision) / information
        squares = np.square(rotated - mean[:, None] * ones) @ precision
        variance = np.maximum(squares / (n - 1), 1e-12)  # systems that never differ
        determinants = np.log(precision).sum() - np.log(information)
        likelihood = (determinants - (n - 1) * np.log(variance)) / 2
        results.append((likelihood, np.abs(mean) / np.sqrt(variance / information)))
    likelihoods, statistics = (np.array(values) for values in zip(*results, strict=True))
    best = likelihoods.argmax(axis=0)
    p: Numbers = 2 * norm.sf(statistics[best, np.arange(len(best))])
    return p


def _incidence(stories: Stories) -> csr_array:
    """Return a matrix (N, stories) with 1 where a triple has a story."""
    triples = np.repeat(np.arange(len(stories)), stories.shape[1])
    return csr_array((np.ones(stories.size), (triples, stories.ravel())))


def _sharing(stories: Stories) -> csr_array:
    """Return a matrix (N, N) that is not 0 where two triples share a story."""
    return _incidence(stories) @ _incidence(stories).T


def accuracy_intervals(name: str, stories: Stories, effect: str, right: Right) -> list[IntervalRow]:
    """Measure the coverage of the intervals of an accuracy."""
    shared = SharedStories(stories)
    methods: dict[str, Callable[[Right], tuple[float, float]]] = {
        "Wilson": lambda answers: wilson_interval(int(answers.sum()), len(answers)),
        "by story": lambda answers: interval_by_story(answers, shared),
    }
    rows = []
    for method, interval in methods.items():
        ends = np.array([interval(answers) for answers in right])
        rows.append(IntervalRow(name, len(stories), effect, method, *_covered(ends, ACCURACY), len(right)))
    return rows


def difference_intervals(name: str, effect: str, ours: Right, published: Right) -> list[IntervalRow]:
    """Measure the coverage of the interval of ours - published, for systems of equal accuracy.

    Beside it: how often the published figure lies in the interval of our accuracy alone.
    """
    simulations, n = ours.shape
    shares = [*zip(ours.mean(axis=1).tolist(), published.mean(axis=1).tolist(), strict=True)]
    ends = np.array([difference_interval(x, n, y, published.shape[1]) for x, y in shares])
    single = np.array([wilson_interval(round(x * n), n) for x, _ in shares])
    inside = [low <= y <= high for (low, high), (_, y) in zip(single, shares, strict=True)]
    width = float((single[:, 1] - single[:, 0]).mean())
    return [
        IntervalRow(name, n, effect, "ours - published", *_covered(ends, 0), simulations),
        IntervalRow(name, n, effect, "ours alone", float(np.mean(inside)), width, simulations),
    ]


def group_coverage(simulations: int = 1000, seed: int = 0) -> list[GroupRow]:
    """Simulate all intervals of means over groups.

    Args:
        simulations: number of simulations of each row.
        seed: of all random numbers.
    """
    generator = np.random.default_rng(seed)
    rows: list[GroupRow] = []
    for num_groups in NUM_GROUPS:
        for values in ("0/1", "graded"):
            for a, b in SHAPES:
                samples = [grouped_values(num_groups, values, a, b, generator) for _ in range(simulations)]
                for name, interval in GROUP_INTERVALS.items():
                    ends = np.array([interval(*sample, generator) for sample in samples])
                    coverage, width = _covered(ends, a / (a + b))
                    rows.append(GroupRow(num_groups, values, f"{a:g}, {b:g}", name, coverage, width, simulations))
    return rows


def grouped_values(
    num_groups: int, values: str, a: float, b: float, generator: np.random.Generator
) -> tuple[Numbers, Stories]:
    """Draw values (N,) and their groups (N,)."""
    sizes = generator.geometric(1 / 4, num_groups)
    groups = np.repeat(np.arange(num_groups), sizes)
    means = generator.beta(a, b, num_groups)[groups]
    if values == "0/1":
        return (generator.random(len(groups)) < means).astype(np.float64), groups
    return generator.beta(np.maximum(4 * means, 1e-3), np.maximum(4 * (1 - means), 1e-3)), groups


def score(values: Numbers, groups: Stories, generator: np.random.Generator) -> tuple[float, float]:
    """Compute the interval that narrlit uses."""
    return group_intervals(values[:, None], groups)[0]


def percentile(values: Numbers, groups: Stories, generator: np.random.Generator) -> tuple[float, float]:
    """Compute the percentile interval of means of resampled groups."""
    sums, sizes = _sums(values, groups)
    counts = _resampled(len(sizes), generator)
    low, high = np.quantile(counts @ sums / (counts @ sizes), (0.025, 0.975)).tolist()
    return low, high


def studentized(values: Numbers, groups: Stories, generator: np.random.Generator) -> tuple[float, float]:
    """Compute the percentile-t interval of resampled groups (Cameron, Gelbach and Miller 2008)."""
    sums, sizes = _sums(values, groups)
    counts = _resampled(len(sizes), generator)
    n = counts @ sizes
    means = counts @ sums / n
    residuals = sums - sizes * means[:, None]
    errors = np.sqrt((counts * residuals**2).sum(axis=1)) / n
    error = _standard_error(sums, sizes)
    # A resample of equal groups has no error: a hundredth of that of the sample keeps its statistic finite.
    statistics = (means - values.mean()) / np.maximum(errors, max(error / 100, 1e-12))
    least, most = np.quantile(statistics, (0.025, 0.975)).tolist()
    return _clipped(values.mean() - most * error, values.mean() - least * error)


def wild(values: Numbers, groups: Stories, generator: np.random.Generator) -> tuple[float, float]:
    """Compute the interval of the wild cluster bootstrap (Cameron, Gelbach and Miller 2008) with Webb's weights."""
    sums, sizes = _sums(values, groups)
    n, mean = len(values), values.mean()
    residuals = sums - sizes * mean
    weighted = residuals * generator.choice(WEBB, (GROUP_RESAMPLES, len(sizes)))
    shifts = weighted.sum(axis=1) / n
    errors = np.sqrt(np.square(weighted - sizes * shifts[:, None]).sum(axis=1)) / n
    quantile = float(np.quantile(np.abs(shifts) / np.maximum(errors, 1e-12), 0.95))
    margin = quantile * _standard_error(sums, sizes)
    return _clipped(mean - margin, mean + margin)


def student(values: Numbers, groups: Stories, generator: np.random.Generator) -> tuple[float, float]:
    """Compute Student's t-interval of the ratio of sums and sizes, with one degree of freedom less than groups."""
    sums, sizes = _sums(values, groups)
    count = len(sizes)
    margin = t.isf(0.025, count - 1) * np.sqrt(count / (count - 1)) * _standard_error(sums, sizes)
    return _clipped(values.mean() - margin, values.mean() + margin)


GROUP_INTERVALS: Mapping[str, Callable[[Numbers, Stories, np.random.Generator], tuple[float, float]]] = {
    "percentile": percentile,
    "studentized": studentized,
    "wild": wild,
    "t": student,
    "score": score,
}
"""Intervals of a mean over groups by name."""


def _sums(values: Numbers, groups: Stories) -> tuple[Numbers, Stories]:
    """Sum the values of each group, and count them."""
    return np.bincount(groups, values).astype(np.float64), np.bincount(groups)


def _resampled(num_groups: int, generator: np.random.Generator) -> Stories:
    """Count how often each group is drawn in each resample."""
    return generator.multinomial(num_groups, np.full(num_groups, 1 / num_groups), GROUP_RESAMPLES)


def _standard_error(sums: Numbers, sizes: Stories) -> float:
    """Compute the standard error of the mean from the sums and sizes of groups, without a factor for few groups."""
    n = sizes.sum()
    return float(np.sqrt(np.square(sums - sizes * sums.sum() / n).sum()) / n)


def _clipped(low: float, high: float) -> tuple[float, float]:
    """Clip an interval to the range of the values."""
    return max(0.0, float(low)), min(1.0, float(high))


def _covered(ends: Numbers, truth: float) -> tuple[float, float]:
    """Share of intervals (S, 2) that hold a number, and their mean width."""
    low, high = ends.T
    return _share((low <= truth) & (truth <= high)), float((high - low).mean())


def _share(answers: Right) -> float:
    return float(answers.mean())


def tables(tests: Sequence[TestRow], intervals: Sequence[IntervalRow]) -> str:
    """Format the rows, in percent: false positives / power of each test, coverage (and width) of each interval."""
    by_setting: dict[tuple[str, int, str], dict[str, str]] = {}
    for row in tests:
        cell = f"{100 * row.false_positives:.1f} / {100 * row.power:.0f}"
        by_setting.setdefault((row.triples, row.n, row.stories), {})[row.test] = cell
    names = ("triples", "n", "effect of stories")
    lines = [dict(zip(names, setting, strict=True)) | cells for setting, cells in by_setting.items()]
    by_interval: dict[tuple[str, int, str], dict[str, str]] = {}
    for interval in intervals:
        setting = (interval.triples, interval.n, interval.stories)
        by_interval.setdefault(setting, {})[interval.interval] = f"{100 * interval.coverage:.1f} ({interval.width:.3f})"
    columns = dict.fromkeys(interval.interval for interval in intervals)
    covered = [
        dict(zip(names, setting, strict=True)) | {name: cells.get(name, "") for name in columns}
        for setting, cells in by_interval.items()
    ]
    simulations = tests[0].simulations
    errors = [100 * float(np.sqrt(share * (1 - share) / simulations)) for share in (0.05, 0.5)]
    note = (
        f"Standard error of {simulations:,} simulations: {errors[0]:.1f} points for false positives and coverage, "
        f"at most {errors[1]:.1f} for power."
    )
    return "\n".join(
        [
            markdown_table("False positives / power, in percent (nominal: 5)", lines),
            markdown_table("Coverage of 95 % intervals, in percent (mean width)", covered),
            note,
        ]
    )


def coverage_ranges(rows: Sequence[GroupRow]) -> dict[str, dict[str, list[float]]]:
    """Lowest and highest coverage of each interval over the settings, by number of groups."""
    ranges: dict[str, dict[str, list[float]]] = {}
    for groups in NUM_GROUPS:
        ranges[str(groups)] = {}
        for name in GROUP_INTERVALS:
            coverages = [row.coverage for row in rows if (row.groups, row.interval) == (groups, name)]
            ranges[str(groups)][name] = [min(coverages), max(coverages)]
    return ranges


def group_table(rows: Sequence[GroupRow]) -> str:
    """Format the coverage (and mean width) of intervals over groups, in percent."""
    by_setting: dict[tuple[int, str, str], dict[str, str]] = {}
    for row in rows:
        cell = f"{100 * row.coverage:.1f} ({row.width:.2f})"
        by_setting.setdefault((row.groups, row.values, row.shape), {})[row.interval] = cell
    lines = []
    for (groups, values, shape), cells in by_setting.items():
        lines.append({"groups": groups, "values": values, "Beta": shape, **cells})
    return markdown_table("Coverage of 95 % intervals of means over groups, in percent (mean width)", lines)


def main() -> None:
    """Print the tables, and write the rows to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--triples", nargs="*", default=[], metavar="FILE", help="files of triples, beside a synthetic structure"
    )
    parser.add_argument("--simulations", type=int, default=1000, help="simulations of each row (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file of the rows")
    options = parser.parse_args()
    tests, intervals = error_rates(options.triples, options.simulations, options.seed)
    groups = group_coverage(options.simulations, options.seed)
    if options.out is not None:
        content = {
            "simulations": options.simulations,
            "seed": options.seed,
            "tests": [asdict(row) for row in tests],
            "intervals": [asdict(row) for row in intervals],
            "groups": [asdict(row) for row in groups],
            "coverage_ranges": coverage_ranges(groups),
        }
        with atomic_path(options.out) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(tables(tests, intervals))
    print(group_table(groups))


if __name__ == "__main__":
    main()
