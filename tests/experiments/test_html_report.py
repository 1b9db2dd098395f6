"""The report's figures against hand computation, hostile texts, and the page in headless Chromium."""

import re
import shutil
from base64 import b64encode
from hashlib import sha256

import numpy as np
import pytest
from browser import Browser
from refusals import refused

import narrlit
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.experiments.evaluation import compare_answers
from narrlit.experiments.facets import read_facets
from narrlit.experiments.html_report import RIGHT, _maps, _marked, _projector, html_report
from narrlit.experiments.run import Run
from narrlit.experiments.systems import SystemAnswers
from narrlit.models.run_file import RunFile
from narrlit.results.findings import with_verdict
from narrlit.statistics.set_checks import CheckedSet, check_sets

ATTACK = "<img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7 * 7 }}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
N = 12
TIP = """(() => {
  const find = (node) => {
    if (/bk-Tooltip/.test(node.className)) return node;
    for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) {
      const tip = find(child);
      if (tip) return tip;
    }
  };
  return find(document.body)?.shadowRoot.textContent ?? "";
})()"""
ANCHOR = """(() => {
  document.querySelector("[data-map]").parentElement.scrollIntoView({block: "center"});
  for (const root of [...Bokeh.index.roots]) for (const view of root.renderer_views?.values() ?? [])
    if (view.glyph?.model.x?.field == "x0") {
      const box = root.canvas_view.el.getBoundingClientRect();
      return [box.x + view.glyph.sx[0], box.y + view.glyph.sy[0]];
    }
})()"""


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


def test_the_page_states_what_was_counted(case):
    _, (model, _), path = case
    page = path.read_text(encoding="utf-8")
    right = int(model.correct.sum())

    assert 0 < right < N
    assert f"a &lt;b&gt;model&lt;/b&gt;: {right} right, {N - right} wrong" in page

    closer = 1 - np.array([pair[0 if label else 1] for pair, label in zip(model.scores, model.labels, strict=True)])
    assert f"closer {closer.mean():.3f} ± {closer.std():.3f}, other " in page
    assert "trained on its own validation triples" in page
    assert re.search(r"[Nn]o difference", page)
    assert re.search(r"train\.jsonl</td>\s*<td[^>]*>77", page)


def test_a_map_names_the_closer_candidate_and_colors_answers(case):
    triples, (model, _), _ = case
    [section] = _maps([model], triples, "pca")
    [plot] = section.figures.values()
    data = plot.renderers[0].data_source.data
    for row, label in enumerate(model.labels):
        texts = [data[name][row].split()[0] for name in ("closer", "other")]
        assert texts == (["first", "second"] if label else ["second", "first"])

    assert [color == RIGHT for color in data["color"]] == model.correct.tolist()


def test_a_margin_makes_fewer_triangles_right(case):
    triples, (model, _), _ = case
    closer = np.where(model.labels, model.scores[:, 0], model.scores[:, 1])
    other = np.where(model.labels, model.scores[:, 1], model.scores[:, 0])
    margin = float(np.median((closer - other)[model.correct])) + 1e-9  # not at a triple's own, which rounding decides
    [section] = _maps([model], triples, "pca", margin)
    [plot] = section.figures.values()

    right = [color == RIGHT for color in plot.renderers[0].data_source.data["color"]]
    assert right == ((1 - closer) + margin < (1 - other)).tolist()
    assert 0 < sum(right) < model.correct.sum()
    with refused("margin_of_distances", margin=-1):
        narrlit.report(["minilm"], triples="t.jsonl", margin=-1)


def test_the_worst_error_comes_first_with_its_scores(case):
    _, (model, _), path = case
    worst = int(np.argmin(model.margin))
    closer, other = model.scores[worst] if model.labels[worst] else model.scores[worst][::-1]
    error = path.read_text(encoding="utf-8").partition("<article>")[2].partition("</article>")[0]

    assert f"Row {worst + 1}<" in error
    assert error.index(f"Closer, score {closer:.3f}") < error.index(f"Answered, score {other:.3f}")
    assert "<mark>ferry</mark>" in error


def test_texts_are_escaped_and_only_our_scripts_may_run(case):
    page = case[2].read_text(encoding="utf-8")
    assert len(page.encode()) < 5e6

    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == page.count("</script>") == 3

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for script in scripts:
        assert b64encode(sha256(script.encode()).digest()).decode() in policy
    assert "<img" not in page.replace(scripts[0], "")
    assert "onerror=alert(1)&gt;" in page
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
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: the page was opened in no browser")
def test_in_a_browser_it_logs_no_error_shows_texts_and_fits_a_phone(case, tmp_path):
    browser = Browser(CHROMIUM, tmp_path)
    try:
        browser.open(case[2], 1280)
        x, y = browser.wait(ANCHOR)
        browser("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        assert "<img src=x onerror=alert(1)>" in browser.wait(TIP)
        for kind in ("mousePressed", "mouseReleased"):
            browser("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        assert "anchor of row 0" in browser.wait("document.querySelector('.chosen').textContent")
        browser.open(case[2], 400)
        assert browser.value("document.documentElement.scrollWidth") == 400
        assert browser.value("document.querySelectorAll('img').length") == 0
    finally:
        browser.close()

    assert browser.problems() == []
    assert browser.requested() == [case[2].as_uri()] * 2
