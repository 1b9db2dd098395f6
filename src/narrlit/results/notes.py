"""Notes on results: codes with values, and the sentence of each code."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from narrlit.sentences import SentenceFormatter
from narrlit.statistics.estimates import Row

NOTE_SENTENCES = {
    # Conclusions
    "better": "{systems}: better than {against}.",
    "worse": "{systems}: worse than {against}.",
    "undecided": (
        "{systems}: a difference to {against} cannot be shown at n = {n}; about {points} points would be needed."
    ),
    "undecidable": "{systems}: a difference to {against} cannot be shown; these triples can't show any difference.",
    "no_result": "{systems}: no result, trained on these triples.",
    "against_no_result": "{against} was trained on these triples: differences to it are not valid results.",
    "worse_than_teams": "{system}: worse than {n:#team} ({teams}).",
    "better_than_teams": "{system}: better than {n:#team} ({teams}).",
    "undecided_teams": "{system}: no difference is shown to {n:#team} ({teams}).",
    "other_triples": (
        "warning: {system} was evaluated on {n:#triple}, the teams on the {of_teams} test triples: accuracies on "
        "different triples can't be compared."
    ),
    "board": "Teams: official results, {source}.",
    # Circumstances of an accuracy
    "seen_in_training": "{system}: {reason}.",
    "transductive": "{systems}: transductive, post-processing was fitted on these stories.",
    "ties": "{n:#tie} (equal scores of A and B) in {systems}, which count as answers for B.",
    "shared_stories": (
        "{sharing} of {n} triples share a story with others; the variance is robust to this (Student's t with "
        "{degrees:.0f} degrees of freedom)."
    ),
    "too_many_shared_stories": (
        "{sharing} of {n} triples share a story with others, so many that neither a difference nor its absence can be "
        "shown."
    ),
    "nan_scores": "{systems}: no accuracy, scores are NaN.",
    "flags": "Flags of {system}: {flags}.",
    "last_epoch": "Last epoch: not selected by any evaluation.",
    "last_epoch_decided": (
        "Last epoch: not selected by any evaluation, except by callbacks that used the evaluated triples: {callbacks}."
    ),
    "best_epoch": (
        "Best epoch: selected by the evaluated triples themselves, out of {n:#evaluation} in total: too high because "
        "of this selection."
    ),
    "single_fits": (
        "Each row is one fit, that of {system} with seed {seed}: intervals do not include the variation between fits."
    ),
    "ungrouped": "UNGROUPED: folds by example; evaluated stories may be in the training data.",
    "synthetic_evaluated": "Synthetic examples are evaluated, most of which word overlap alone may solve.",
    "trials": (
        "Trials: accuracy on fold 0 in the best epoch of each; that of the winner is the highest of {trials:#trial} "
        "and {evaluations:#evaluation} on the same {n:#triple}: too high because of this selection."
    ),
    "held_out": "given (the unchanged config), winner: evaluated on folds {folds}, on which no trial was evaluated.",
    "earlier_winners": "These folds also evaluated earlier winners, of fewer trials: {winners}.",
    "winner_command": "Fit the winner on all examples: `{command}`",
    # Rows and columns
    "reference": "Reference: the encoder before training, without a new head.",
    "deviation_over_seeds": (
        "±: standard deviation between the seeds, the variation of training only; intervals and p are over triples."
    ),
    "deviation_over_folds": "±: standard deviation between the folds; intervals and p are over all their triples.",
    "oracle": "At least one right (oracle): an upper bound of what a choice between {systems} could reach.",
    "weighted_mean": (
        "Weighted mean: of the score differences of {systems}, each divided by its root mean square, with the weights "
        "that were best on the other folds: {weights}."
    ),
    "by_overlap": (
        "Overlap: word overlap (Jaccard index) with the anchor, that of the right candidate minus that of the wrong "
        "one; below 0, words mislead."
    ),
    "by_length": "Length: mean number of words in the stories of a triple.",
    "by_margin": "Margin: difference of a system's two scores, by its own quartiles: how certain it is.",
    "stop_words": "Stop words: {words}.",
    # Tables of papers
    "paper_table": "Table {number}: {shows}.",
    "stand_in": "Stand-in, {name}: {text}.",
    "fit_options": "Options of the fits, in addition to those of the tables: {options}.",
    "mean_of_seeds": (
        "Trained rows: mean and standard deviation (deviation) over {n:#seed}; interval of a single evaluation."
    ),
    "paper_cross_validation": (
        "CV: accuracy after the last epoch; folds share no stories, and synthetic triples are not evaluated. The paper "
        "does not say which or how many triples its folds evaluate."
    ),
    "paper_best_epoch": (
        "Dev: for trained rows, the best epoch on the same triples, which is too high because of this selection."
    ),
    "not_run": "Not run: {reason}.",
    "absent_encoders": (
        "Encoders that are not available: give their folders with `backbones`; they are recognized by name."
    ),
    "absent_labels": (
        "Test labels: put them into test/labels/ in the folder of `data`, or give `labels_a` and `labels_b`."
    ),
    "to_published": (
        "Difference to published: with its 95 % interval for independent answers (Newcombe), which is usually too wide "
        "if both answer the same triples. If it contains 0, neither a difference nor equality is shown. It has no "
        "interval if the paper's n is unknown."
    ),
    "fusion_weights": "Weights: of {parts}, in this order.",
    "best_elsewhere": (
        "{system}: each of {folds} folds is evaluated with the one of {n:#setting} (multiples of {step}) that was best "
        "on the other folds; triples that share stories are in the same fold."
    ),
    "best_here": "{system}: the best of {n:#setting} on the triples that selected it: NOT A RESULT.",
    "submitted": (
        "submitted: selected by ttda704 on the task's development triples (Table 2): not a valid result there."
    ),
    "judge_systems": (
        "hybrid: the choice of the language model or, without one, of the similarities; llm: on the triples with a "
        "choice; llm_of_all: no choice is wrong."
    ),
    "fallbacks": "Fallbacks to the similarities: {reasons}.",
    "unlabeled": "{n:#triple} without labels.",
    # Findings about data
    "nothing_shared": "No {of} story is in {within}.",
    "shared_alone": (
        "{shared} of {stories} {of} stories are also in {within}; a file of stories has no pairs to compare."
    ),
    "shared_pairs": (
        "{shared} of {stories} {of} stories are also in {within}, with {pairs:#pair} of anchor and candidate: training "
        "on {learned} may reveal labels of {graded}; leave these rows out."
    ),
    "shared_in_training": (
        "{shared} of {stories} {of} stories are also in {within}, in other triples; no pair is shared: labels do not "
        "leak, but a model has read these texts."
    ),
    "shared_in_test": (
        "{shared} of {stories} {of} stories are also in {within}, in other triples; no pair is shared: labels do not "
        "leak, but a transductive method reads these texts."
    ),
    "more_near_duplicates": "Further {of} stories with near-duplicates in {within}: {near_duplicates}.",
    "shortcut": "Shortcut: {probe} alone solves {solved}: accuracy on {set} may be due to it alone.",
    "shortcut_to_learn": "Shortcut: {probe} alone solves {solved}: a model can learn it.",
    "shortcut_in_train": (
        "Shortcut: {probe} alone solves {solved}: a model can learn it, and validation on a part of train would be "
        "misleading."
    ),
    "to_beat": "A system has to beat {probe}: {solved}.",
    "checked_set": (
        "{set}: {rows:#row} of {file} with {stories} different stories, {near_duplicates} of them with near-duplicates "
        "in the same file; stop words: {stop_words}."
    ),
    "near_duplicates": "Near-duplicates have a Jaccard index of three-word shingles of at least {threshold}.",
    "independent": "{file}: {independence}",
    # Retrieval
    "versions": "{queries:#story} share their {column} with another, among {stories:#story}; {values:#value}.",
    "judgments": "{queries:#query} among {stories:#story}.",
    "permuted": (
        "Permuted within: {column} permuted {n} times among the stories of a stratum. Where this changes little, the "
        "stratum explains the figure. Movable: stories whose stratum has several values."
    ),
    "short_stories": "Short: fewer than {words} words, the median.",
    "hub_skewness": "Hubs: skewness of how often a story is among the ten nearest stories of others.",
    "hubs": "{system}: a few stories are close to many others (hubs; skewness {skewness}).",
    # Profile
    "twice_told": "{corpus}: {plots:#plot} in {worlds:#world}; measure {measure}.",
    "few_plots": "There are no intervals, since they need at least {fewest} plots.",
    "few_worlds": "Shares have no intervals, since they need at least {fewest} worlds.",
    "shares": "Share: of the variance of stories, by what they have in common.",
    "falls": (
        "Fall: when only this aspect is changed, in standard deviations of the similarity of stories that share "
        "neither plot nor world."
    ),
    "cells": (
        "Far: the positive tells the plot in another world; near: in the same world, with one aspect changed. Strong: "
        "the negative shares the anchor's world; weak: it does not."
    ),
    # Methods of intervals and tests
    "interval_wilson": "Intervals are 95 % (Wilson) and assume independent items.",
    "interval_score": "Intervals are 95 % (score interval) and assume independent items.",
    "interval_by_story": "Intervals are 95 % (score interval) and account for stories that items share.",
    "interval_by_group": "Intervals are 95 % and account for groups of items that belong together.",
    "interval_bootstrap": "Intervals of shares are 95 % (bootstrap over both factors of the design).",
    "interval_permutations": "Permuted figures are the mean and the range of 95 % of the permutations.",
    "test_mcnemar": (
        "p is from the exact paired McNemar test, which assumes independent items; intervals of differences are 95 %."
    ),
    "test_mcnemar_by_story": (
        "p is from McNemar's paired test and accounts for stories that items share; intervals of differences are 95 %."
    ),
    "test_permutation": (
        "p is from the paired permutation test, which assumes independent items; intervals of differences are 95 %."
    ),
    "test_permutation_by_story": (
        "p is from the paired permutation test and accounts for stories that items share; intervals of differences are "
        "95 %."
    ),
    "test_permutation_by_group": (
        "p is from the paired permutation test over groups of items that belong together; intervals of differences are "
        "95 %."
    ),
    "test_permuted": "p of a permuted figure is the share of permutations at least as high as the real figure.",
    "test_fisher": (
        "p is from Fisher's exact test, which takes all answers as independent; intervals of differences are 95 % "
        "(Newcombe). Only the numbers of the teams' right answers are known: a paired test would usually find more "
        "differences."
    ),
    "adjusted_p": "Adjusted p is corrected for {n:#comparison} (Holm).",
}
"""Sentence of each code. Values are named in braces; a list is joined by commas, and `{n:#triple}` counts things."""


@dataclass(frozen=True)
class Note:
    """Note on a result, such as a conclusion, a warning, or what a column means.

    Attributes:
        code: its code, a key of `NOTE_SENTENCES`.
        values: values that the sentence names.
    """

    code: str
    values: Mapping[str, object]

    @classmethod
    def of(cls, code: str, **values: object) -> "Note":
        """Make a note; check that its sentence exists and names these values."""
        note = cls(code, values)
        str(note)
        return note

    @property
    def record(self) -> dict[str, object]:
        """Code, values and sentence, as plain data."""
        return {"code": self.code, "values": dict(self.values), "text": str(self)}

    def __str__(self) -> str:
        return SentenceFormatter().format(NOTE_SENTENCES[self.code], **self.values)


def method_notes(figures: Sequence[Row], differences: Sequence[Row]) -> list[Note]:
    """Say by which methods the intervals of figures and the tests of differences were computed."""
    codes = [f"interval_{row['method']}" for row in figures if row.get("method", "none") != "none"]
    tested = [row for row in differences if row["test"] != "none"]
    codes += [f"test_{row['test']}" for row in tested]
    notes = [Note.of(code) for code in dict.fromkeys(codes)]
    comparisons = Counter((row["against"], row["subset"], row["metric"]) for row in tested)
    most = max(comparisons.values(), default=0)
    return notes if most < 2 else [*notes, Note.of("adjusted_p", n=most)]
