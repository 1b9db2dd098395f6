"""The report's figures against hand computation, hostile texts, and the page in headless Chromium."""

import re
from base64 import b64encode
from hashlib import sha256
from xml.etree import ElementTree

import numpy as np
import pytest
from page_files import carried, needs_browser, opened, saved
from refusals import refused

import narrlit
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.experiments.evaluation import compare_answers
from narrlit.experiments.facets import read_facets
from narrlit.experiments.html_report import _maps, _marked, _projector, html_report
from narrlit.experiments.run import Run
from narrlit.experiments.systems import SystemAnswers
from narrlit.models.run_file import RunFile
from narrlit.results.findings import with_verdict
from narrlit.statistics.set_checks import CheckedSet, check_sets

ATTACK = "<img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7 * 7 }}"
N = 12


def labeled_triples():
    stories = StoryTable()
    rows = []
    for row in range(N):
        texts = [f"{name} of row {row}: a ferry captain sails {ATTACK}" for name in ("anchor", "first", "second")]
        rows.append(Triple(*(stories.add(text) for text in texts), a_is_closer=row % 2 == 0))
    return Triples(stories, rows)


def model_answers(triples, name="a <b>model</b>"):
    vectors = np.random.default_rng(0).normal(size=(N, 3, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    scores = np.einsum("nd,nkd->nk", vectors[:, 0], vectors[:, 1:]).astype(np.float64)
    return SystemAnswers.scored(
        name, "model", triples.labels == 1, scores, vectors=vectors, flags={"trained_on_validation": True}
    )


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """The triples, two systems, and the page's path."""
    folder = tmp_path_factory.mktemp("report")
    triples = labeled_triples()
    systems = [model_answers(triples), SystemAnswers("plain", "answers", triples.labels == 1, np.ones(N, dtype=bool))]
    facets = read_facets(["margin", "overlap"], triples)
    accuracy = systems[0].estimate
    figures = {"n": N, "accuracy": accuracy.value, "interval": [accuracy.low, accuracy.high]}
    entry = {"epoch": 0, "step": 4, "correct": int(systems[0].correct.sum()), **figures}
    record = {"validations": [entry], "untrained": entry, "best": entry, "command": {"line": ATTACK}, "seed": 3}
    record["data"] = {"train": {"files": [{"path": "/x/train.jsonl", "sha256": "0", "rows": 77}]}}
    checked = CheckedSet("validation", triples.texts(), (triples.labels == 1).tolist(), sided=True)
    check = with_verdict(check_sets([checked]))
    runs = {systems[0].name: Run(folder, RunFile.model_validate(record))}
    page = html_report(
        systems, compare_answers(systems, triples, facets, {}), runs, triples, ATTACK, {ATTACK: check}, "pca"
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return triples, systems, path


def content_of(path):
    """Findings and sections of a report, by their kind."""
    content = carried(path.read_text(encoding="utf-8"))["answers"]["report"]
    return content["findings"], {section["kind"]: section for section in content["sections"]}


def test_the_page_states_what_was_counted(case):
    _, (model, _), path = case
    findings, sections = content_of(path)
    right = int(model.correct.sum())

    assert 0 < right < N
    assert sections["map"]["figures"][0]["values"] == {"system": "a <b>model</b>", "right": right, "wrong": N - right}

    closer = 1 - np.array([pair[0 if label else 1] for pair, label in zip(model.scores, model.labels, strict=True)])
    [distances] = sections["distances"]["figures"]
    assert distances["values"]["closer"] == f"{closer.mean():.3f} ± {closer.std():.3f}"
    counts, _ = np.histogram(closer, distances["edges"])
    assert distances["series"][0]["counts"] == counts.tolist()

    assert any("trained on its own validation triples" in finding for finding in findings)
    assert any(re.search(r"[Nn]o difference", finding) for finding in findings)
    assert [[row["data"], row["rows"]] for row in sections["data"]["tables"][0][1] if row["as"] == "train"] == [
        ["train.jsonl", 77]
    ]


def test_charts_show_accuracies_with_their_intervals(case):
    _, (model, plain), path = case
    _, sections = content_of(path)
    accuracy = model.estimate
    interval = [accuracy.value, accuracy.low, accuracy.high]

    [overlap] = sections["kinds"]["figures"]
    assert overlap["bins"][0] == "all"
    assert overlap["series"][0]["values"][0] == interval
    assert [series["name"] for series in overlap["series"]] == [model.name, plain.name]

    [epochs] = sections["training"]["figures"]  # no losses are recorded
    assert epochs["series"][0]["points"] == [[1, *interval]] * 2  # both are recorded after one epoch

    [margin] = sections["margin"]["figures"]
    assert [round(x) for x, *_ in margin["series"][0]["points"]] == [1, 2, 3, 4]
    assert margin["series"][1]["points"] == []


def test_a_map_names_the_closer_candidate_and_colors_answers(case):
    triples, (model, _), _ = case
    [section] = _maps([model], triples, "pca")
    [figure] = section.figures
    for triple, label in zip(figure["triples"], model.labels, strict=True):
        texts = [text.split()[0] for text in triple["texts"]]
        assert texts == (["anchor", "first", "second"] if label else ["anchor", "second", "first"])

    assert [triple["right"] for triple in figure["triples"]] == model.correct.tolist()


def test_a_margin_makes_fewer_triangles_right(case):
    triples, (model, _), _ = case
    closer = np.where(model.labels, model.scores[:, 0], model.scores[:, 1])
    other = np.where(model.labels, model.scores[:, 1], model.scores[:, 0])
    margin = float(np.median((closer - other)[model.correct])) + 1e-9  # not at a triple's own, which rounding decides
    [section] = _maps([model], triples, "pca", margin)
    right = [triple["right"] for triple in section.figures[0]["triples"]]
    assert right == ((1 - closer) + margin < (1 - other)).tolist()
    assert 0 < sum(right) < model.correct.sum()
    with refused("margin_of_distances", margin=-1):
        narrlit.report(["minilm"], triples="t.jsonl", margin=-1)


def test_the_worst_error_comes_first_with_its_scores(case):
    _, (model, _), path = case
    worst = int(np.argmin(model.margin))
    closer, other = model.scores[worst] if model.labels[worst] else model.scores[worst][::-1]
    [[name, [error, *_]]] = content_of(path)[1]["errors"]["errors"]

    assert name == model.name
    assert error["row"] == worst + 1
    headings = [(heading, score) for heading, score, _ in error["stories"]]
    assert headings == [("anchor", None), ("closer", f"{closer:.3f}"), ("answered", f"{other:.3f}")]
    assert ["ferry", True] in error["stories"][1][2]


def test_texts_are_escaped_and_only_our_script_may_run(case):
    page = case[2].read_text(encoding="utf-8")
    assert len(page.encode()) < 1e6

    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert page.count("</script>") == 2  # with the data
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert b64encode(sha256(script.encode()).digest()).decode() in policy
    assert "<img" not in page
    assert "{{ 7 * 7 }}" in page


def test_few_stories_are_projected_by_principal_components():
    name, project = _projector("auto", 36)
    points = np.random.default_rng(1).normal(size=(36, 5))
    centered = points - points.mean(axis=0)
    spread = np.sqrt(np.sort(np.linalg.eigvalsh(centered.T @ centered))[::-1][:2])

    assert "PCA" in name
    np.testing.assert_allclose(np.linalg.norm(project(points), axis=0), spread)


def test_marked_words():
    assert _marked("The Ferry left", {"ferry"}) == [("The ", False), ("Ferry", True), (" left", False)]


@pytest.mark.long
@needs_browser
def test_a_triple_is_read_and_kept_below_its_map(case):
    with opened(case[2]) as page:
        anchor = page.locator(".triple circle").first
        anchor.hover()
        chosen = page.locator(".chosen-triple")
        assert "anchor of row 0" in chosen.inner_text()
        assert "<img src=x onerror=alert(1)>" in chosen.inner_text()
        assert page.locator(".triple.shown").count() == 1
        anchor.click()
        page.locator("h1").hover()
        assert "anchor of row 0" in chosen.inner_text()
        assert page.locator("img").count() == 0


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize(
    ("theme", "language", "heading"), [("light", "en-US", "Worst errors"), ("dark", "de-DE", "Schwerste Fehler")]
)
def test_it_fits_a_phone_in_both_languages(case, theme, language, heading):
    options = {"viewport": {"width": 380, "height": 800}, "is_mobile": True, "color_scheme": theme, "locale": language}
    with opened(case[2], **options) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 380
        assert page.get_by_role("heading", name=heading).is_visible()
        assert page.locator(".stories mark", has_text="ferry").first.is_visible()


@pytest.mark.long
@needs_browser
def test_charts_are_saved_as_pictures(case):
    with opened(case[2]) as page:
        count = page.locator(".charts figure").count()
        assert count == 5
        for number in range(count):
            figure = f".charts figure >> nth={number}"
            name, drawing = saved(page, f"{figure} >> .save-svg")
            assert name.endswith(".svg")
            root = ElementTree.fromstring(drawing.decode())
            assert len(list(root.iter())) > 15
        name, picture = saved(page, ".save-png >> nth=0")
        assert name.endswith(".png")
        assert picture.startswith(b"\x89PNG")
