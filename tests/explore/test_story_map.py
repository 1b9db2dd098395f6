"""Groups, their names, links and drawings of small collections of known shape; the pages in a browser."""

import json
import re
import shutil
import unicodedata

import numpy as np
import pandas as pd
import pytest
from browser import Browser
from measured import similarities_of
from refusals import refused

from narrlit.encoding.loading import load
from narrlit.explore import story_map as module
from narrlit.explore.agreement import neighbor_agreement
from narrlit.explore.map_page import CHARACTERS, map_page, write_map_svg
from narrlit.explore.story_map import arrange_stories, central_stories, name_groups
from narrlit.library.story_frame import plain

pytestmark = pytest.mark.usefixtures("memoized_minilm")

ATTACK = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WORDS = [("ship", "storm"), ("dragon", "castle"), ("trial", "judge")]


def collection(size=3, groups=3, seed=0):
    """`size` stories around each of `groups` directions, with words of their group."""
    random = np.random.default_rng(seed)
    vectors = np.repeat(np.eye(groups, 8), size, axis=0) + 0.15 * random.normal(size=(groups * size, 8))
    texts = [f"Anna met a {' and a '.join(WORDS[row // size % 3])}. {ATTACK}" for row in range(len(vectors))]
    frame = pd.DataFrame({"id": [f"s{row}" for row in range(len(texts))], "title": "", "text": texts})
    frame["title"] = [f"Tale {row} $x$ <b>" if row else "" for row in range(len(texts))]
    frame["type"] = np.arange(len(texts)) // size % 3
    frame["year"] = np.arange(len(texts)) + 1900.5
    return frame, (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_a_dendrogram_finds_the_groups_and_puts_each_together():
    frame, vectors = collection()
    # In another order, so that none is the file's.
    order = np.random.default_rng(1).permutation(len(frame))
    result = arrange_stories(frame.iloc[order].reset_index(drop=True), similarities_of(vectors[order]), k=2)
    types = frame["type"].to_numpy()[order]

    assert {(a, b) for a, b in zip(types, result.groups, strict=True)} == set(
        zip(
            types[[list(types).index(t) for t in range(3)]],
            [result.groups[list(types).index(t)] for t in range(3)],
            strict=True,
        )
    )

    leaves = data_of(map_page(result, "x", []))["order"]
    assert result.groups[leaves].tolist() == sorted(result.groups)

    similarities = vectors[order] @ vectors[order].T
    for story, near in enumerate(result.neighbors):
        others = np.delete(np.arange(len(order)), story)
        assert near.tolist() == others[np.argsort(-similarities[story, others])][:2].tolist()

    assert result.neighbor_rows()[0]["neighbor_id"] == result.frame["id"][result.neighbors[0, 0]]
    assert {row["group"] for row in result.group_rows()} == {1, 2, 3}


def test_names_are_words_only_of_the_group_and_central_stories_are_in_it():
    frame, vectors = collection(size=4)
    groups = frame["type"].to_numpy()
    names = name_groups(frame["text"].tolist(), groups)
    central = central_stories(similarities_of(vectors), groups)
    for group, name in enumerate(names):
        assert set(name.split(", ")[:2]) == set(WORDS[group])
        rows = np.flatnonzero(groups == group)
        assert central[group] == rows[np.argmax(vectors[rows] @ vectors[rows].mean(axis=0))]


def test_best_matches_of_near_stories_are_linked_in_order(minilm_encoder):
    slipper = "On the third night of the ball the poor girl ran down the palace stairs at midnight and lost a slipper."
    rain = "It rained all evening in the valley, and the river rose until the fields on both its banks were flooded."
    bread = "Anna bought a loaf of dark bread and a pound of butter from the baker at the corner of the market square."
    shoe = "When the clock struck twelve the girl fled from the dance, and one of her shoes was left on the steps."
    rates = "The central bank lowered its interest rates again in the spring, as most of the analysts had expected."
    trains = "Trains to the north were late for the fourth week in a row because a bridge was being repaired there."
    stories = minilm_encoder.passages([f"{slipper} {rain}", f"{bread} {shoe}", f"{rates} {trains}"])
    links = module.link_passages(stories, np.array([[1], [0], [0]]))

    assert set(links) == {(0, 1), (0, 2)}

    first, second, match = max(links[0, 1], key=lambda link: link[2])
    assert stories[0].texts[first] == slipper
    assert stories[1].texts[second] == shoe
    assert 0.1 < match < 1


def test_numbers_color_a_map_also_as_texts_and_names_that_all_differ_do_not():
    frame, vectors = collection()
    frame["told"] = [str(1800 + row) for row in range(len(frame))]
    frame["file_name"] = [f"{row}.txt" for row in range(len(frame))]
    page = map_page(arrange_stories(plain(frame), similarities_of(vectors), k=2), "x", [])
    assert [column["name"] for column in data_of(page)["columns"]] == ["groups", "type", "year", "told"]


@pytest.fixture(scope="module")
def minilm_encoder():
    return load("minilm")


def test_pages_hold_texts_escaped_and_write_a_drawing(tmp_path):
    frame, vectors = collection()
    result = arrange_stories(frame, similarities_of(vectors), k=4)
    compared = neighbor_agreement(similarities_of(vectors), "type", frame["type"].astype(str).tolist(), 2)
    page = map_page(result, ATTACK, [("Model", ATTACK)], compared, None, None)

    assert "<img" not in page
    assert "{{ 7 * 7 }}" in page

    data = data_of(page)
    assert data["stories"][0]["text"] == [frame["text"][0]]
    assert data["stories"][0]["label"].startswith("Anna met")
    assert abs(data["similarities"][1][2] - 1000 * float(vectors[1] @ vectors[2])) < 0.51  # rounded, in float32
    assert [column["name"] for column in data["columns"] if column["first"]] == ["type"]

    write_map_svg(result, tmp_path / "map.svg")
    drawing = (tmp_path / "map.svg").read_text()
    assert "Tale 1 $x$ &lt;b&gt;" in drawing

    write_map_svg(result, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawing


def test_texts_of_a_large_page_are_cut(monkeypatch):
    frame, vectors = collection()
    monkeypatch.setattr("narrlit.explore.map_page.CHARACTERS", 9 * 20)
    page = map_page(arrange_stories(frame, similarities_of(vectors), k=2), "x", [])

    assert data_of(page)["stories"][0]["text"] == [frame["text"][0][:19] + "…"]
    assert "first 20 characters" in page
    assert CHARACTERS > 10**6


@pytest.mark.long
def test_a_plane_puts_stories_near_their_nearest_neighbors_by_the_measure():
    """Neighbors by words, although their embeddings are far apart."""
    frame, vectors = collection(size=110)
    mixed = np.random.default_rng(2).permutation(vectors)
    result = arrange_stories(frame, similarities_of(mixed, frame["text"].tolist(), "lexical"), k=5)
    types = frame["type"].to_numpy()

    assert (types[result.neighbors] == types[:, None]).mean() > 0.99

    points = result.arrangement.points
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)

    assert (types[distances.argmin(axis=1)] == types).mean() > 0.95
    assert "measure lexical" in result.arrangement.method


def test_two_stories_are_too_few_for_a_map():
    frame, vectors = collection(size=1, groups=2)
    with refused("few_for_map", limit=3):
        arrange_stories(frame, similarities_of(vectors))


def test_copies_of_one_text_are_drawn(tmp_path):
    vectors = np.tile(np.eye(1, 4, dtype=np.float32), (3, 1))
    columns = {
        "id": list("abc"),
        "title": "",
        "text": "And so it is.",
        "length": [np.inf, None, 2],
        "tags": [["x"]] * 3,
    }
    result = arrange_stories(pd.DataFrame(columns), similarities_of(vectors))
    data = data_of(map_page(result, "x", []))

    assert data["similarity"] == [[1, 1]] * 3
    assert data["columns"][1]["values"] == ["", "", 2]

    write_map_svg(result, tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_text().count("And so it is.") == 3


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: the pages were opened in no browser")
@pytest.mark.parametrize("kind", ["dendrogram", "plane"])
def test_in_a_browser_pages_log_no_error_show_texts_and_fit_a_phone(kind, tmp_path):
    frame, vectors = collection(size=3 if kind == "dendrogram" else 120)
    result = arrange_stories(frame, similarities_of(vectors), k=3)

    assert (result.arrangement.points is None) == (kind == "dendrogram")

    links = {}
    for story, neighbors in enumerate(result.neighbors.tolist()):
        links |= {(story, other): [(0, 0, 0.2)] for other in neighbors if story < other}
    sentences = [text.split(". ") for text in frame["text"]]
    page = map_page(result, ATTACK, [("Model", "none")], None, sentences, links)
    path = tmp_path / "map.html"
    path.write_text(page, encoding="utf-8")
    write_map_svg(result, tmp_path / "map.svg")
    browser = Browser(CHROMIUM, tmp_path)
    try:
        for width in (1280, 400):
            browser(
                "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
            )
            browser("Page.navigate", url=path.as_uri())
            browser.wait(
                "document.readyState == 'complete' && document.querySelectorAll('#chosen article').length == 2"
            )
            assert browser.value("document.documentElement.scrollWidth") <= width
        x, y = browser.value(CELL if kind == "dendrogram" else POINT)
        for event in ("mousePressed", "mouseReleased"):
            browser("Input.dispatchMouseEvent", type=event, x=x, y=y, button="left", clickCount=1)
        shown = "document.querySelector('#chosen article h3').textContent == 'Tale 4 $x$ <b>'"
        browser.wait(shown)
        assert "onerror" in browser.value("document.querySelector('#chosen .text').textContent")
        assert browser.value("document.querySelectorAll('#chosen .linked').length") == 2
        assert browser.value("document.querySelectorAll('img').length") == 0
        browser.value("document.getElementById('search').value = 'dragon'; search()")
        assert browser.value("document.getElementById('matches').textContent").startswith(f"{len(frame) // 3} found")
    finally:
        browser.close()

    assert browser.problems() == []
    assert {url for url in browser.requested() if not url.startswith("data:")} == {path.as_uri()}


CELL = """(() => {  // of story 4 and its nearest
  const box = document.querySelector(".heat canvas").getBoundingClientRect();
  scrollTo(0, box.y);
  const at = document.querySelector(".heat canvas").getBoundingClientRect();
  const place = (story) => (data.order.indexOf(story) + 0.5) / data.order.length;
  return [at.x + at.width * place(data.near[4][0]), at.y + at.height * place(4)];
})()"""
POINT = """(() => {
  document.querySelector(".plane").scrollIntoView();
  const [root] = Bokeh.index.roots;
  const points = Bokeh.documents[0].get_model_by_name("points").data;
  const box = root.canvas_view.el.getBoundingClientRect();
  return [box.x + root.frame.x_scale.compute(points.x[4]), box.y + root.frame.y_scale.compute(points.y[4])];
})()"""


def test_integers_on_the_page_keep_their_digits():
    frame, vectors = collection()
    posts = [1234567890123456789, 1234567890123456789, None, 2**53, 1890, 1890.0, 0.5, True, 7]
    frame["post"] = pd.Series(posts, dtype=object)
    page = map_page(arrange_stories(frame, similarities_of(vectors), k=2), "t", {})
    [column] = [column for column in data_of(page)["columns"] if column["name"] == "post"]
    big = "1234567890123456789"
    assert repr(column["values"]) == repr([big, big, "", 2**53, 1890, 1890, 0.5, "True", 7])


def test_the_words_of_decomposed_texts_name_their_group():
    texts = [unicodedata.normalize("NFD", f"Der König ritt zum Schloß {n}.") for n in range(3)] + [
        "Ein Fuchs lief."
    ] * 3
    [first, _] = name_groups(texts, np.array([0, 0, 0, 1, 1, 1]))
    assert "könig" in first
