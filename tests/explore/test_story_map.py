"""Groups, their names, links and drawings of small collections of known shape; the pages in a browser."""

import re
import unicodedata
from base64 import b64encode
from hashlib import sha256
from types import SimpleNamespace
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from measured import similarities_of
from page_files import carried, needs_browser, opened, saved
from refusals import refused

from narrlit.encoding.loading import load
from narrlit.explore.agreement import neighbor_agreement
from narrlit.explore.explanation import explain
from narrlit.explore.map_drawing import write_map_svg
from narrlit.explore.map_page import CHARACTERS, map_page, matched_pairs
from narrlit.explore.mapping import map_stories
from narrlit.explore.story_map import arrange_stories, central_stories, name_groups
from narrlit.library.collection import Collection
from narrlit.library.story_frame import plain

pytestmark = pytest.mark.usefixtures("memoized_minilm")

ATTACK = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
FACTS = {"model": "minilm", "accuracy": "none"}
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

    leaves = carried(map_page(result, "x", FACTS))["answers"]["map"]["tree"]["order"]
    groups = dict(zip(result.frame["id"], result.groups.tolist(), strict=True))
    assert [groups[id] for id in leaves] == sorted(result.groups)

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


def test_a_page_carries_the_links_of_all_pairs_of_few_stories_and_of_near_ones_of_many(monkeypatch):
    frame, _ = collection()
    stories = Collection.of(frame, load("minilm"))
    neighbors = np.array([[(row + 1) % 9] for row in range(9)])

    assert len(matched_pairs(stories, neighbors)) == 9 * 8 // 2

    monkeypatch.setattr("narrlit.explore.map_page.ALL_PAIRS", 5)
    pairs = matched_pairs(stories, neighbors)
    assert set(pairs) == {(row, row + 1) for row in range(8)} | {(0, 8)}

    pair = pairs[0, 1]
    assert pair.similarity == pytest.approx(explain("s0", "s1", stories=stories).similarity)

    data = carried(map_page(map_stories(stories, k=1).arranged, "x", FACTS, None, pairs))
    [first, second, share, _, _] = data["pairs"]["0-1"]["links"][0]
    assert share == round(pair.links["share"].iloc[0], 4)
    for row, number in ((0, first), (1, second)):
        start, end = data["stories"][row]["passages"][number]
        assert frame["text"][row][start:end] == pair.passages[row][number]


@pytest.mark.long
@needs_browser
def test_numbers_color_a_map_also_as_texts_and_names_that_all_differ_do_not(tmp_path):
    frame, vectors = collection()
    frame["told"] = [str(1800 + row) for row in range(len(frame))]
    frame["file_name"] = [f"{row}.txt" for row in range(len(frame))]
    page = map_page(arrange_stories(plain(frame), similarities_of(vectors), k=2), "x", FACTS)
    path = tmp_path / "map.html"
    path.write_text(page, encoding="utf-8")
    with opened(path) as shown:
        shown.wait_for_selector(".leaves")
        assert shown.locator("#color option").all_inner_texts() == ["groups found", "type", "year", "told"]


def test_pages_hold_texts_escaped_and_write_a_drawing(tmp_path):
    frame, vectors = collection()
    result = arrange_stories(frame, similarities_of(vectors), k=4)
    compared = neighbor_agreement(similarities_of(vectors), "type", frame["type"].astype(str).tolist(), 2)
    page = map_page(result, ATTACK, {"model": ATTACK}, compared)

    assert "<img" not in page
    assert "{{ 7 * 7 }}" in page

    data = carried(page)
    assert data["stories"][0]["text"] == frame["text"][0]
    assert data["stories"][0]["title"].startswith("Anna met")
    assert data["answers"]["map"]["color"] == "type"

    drawn = data["answers"]["map"]
    first, second = (drawn["tree"]["order"].index(f"s{row}") for row in (1, 2))
    assert abs(drawn["similarities"][first][second] - float(vectors[1] @ vectors[2])) < 1e-4

    write_map_svg(result, tmp_path / "map.svg")
    drawing = (tmp_path / "map.svg").read_text()
    assert "Tale 1 $x$ &lt;b&gt;" in drawing

    write_map_svg(result, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawing
    assert drawing.count("#08306b") >= 1  # the darkest cell


def test_only_the_script_and_the_style_of_a_page_are_allowed():
    frame, vectors = collection()
    page = map_page(arrange_stories(frame, similarities_of(vectors), k=2), ATTACK, FACTS)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]

    assert policy.startswith("default-src 'none'; ")
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert f"{rule} 'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy


def test_texts_of_a_large_page_are_cut(monkeypatch):
    frame, vectors = collection()
    monkeypatch.setattr("narrlit.explore.map_page.CHARACTERS", 9 * 20)
    data = carried(map_page(arrange_stories(frame, similarities_of(vectors), k=2), "x", FACTS))

    assert data["stories"][0]["text"] == frame["text"][0][:19] + "…"
    assert data["cut"] == 20
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
    data = carried(map_page(result, "x", FACTS))

    assert [[near[1] for near in story["near"]] for story in data["stories"]] == [[1, 1]] * 3
    assert [story["metadata"].get("length") for story in data["stories"]] == [None, None, 2]

    write_map_svg(result, tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_text().count("And so it is.") == 3


@pytest.fixture(scope="module")
def tree_file(tmp_path_factory):
    """A map of nine stories with hostile texts."""
    return written(collection(size=3), tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def plane_file(tmp_path_factory):
    """A map of 360 stories."""
    return written(collection(size=120), tmp_path_factory.mktemp("plane"))


def written(stories, folder):
    """Write a map; a browser opens it with the colors of the types."""
    frame, vectors = stories
    similarities = similarities_of(vectors)
    compared = neighbor_agreement(similarities, "type", frame["type"].astype(str).tolist(), 2)
    stories = SimpleNamespace(frame=frame, similarities=similarities)
    page = map_page(arrange_stories(frame, similarities, k=3), ATTACK, FACTS, compared, compared=stories)
    path = folder / "map.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.mark.long
@needs_browser
def test_a_tree_shows_a_story_with_its_nearest_ones_and_finds_words(tree_file):
    with opened(tree_file) as page:
        page.locator(".leaves").get_by_role("button", name="Tale 4 $x$ <b>").click()
        page.wait_for_selector(".near-stories h3")
        assert "onerror=alert(1)" in page.locator(".near-stories .text").inner_text()
        assert page.locator(".near-stories .nearest li").count() == 3
        assert page.locator(".leaves .near").count() == 3
        assert page.locator("img").count() == 0

        page.fill("#find", "dragon")
        page.locator(".matches", has_text="3 stories").wait_for()
        assert page.locator(".leaves .faded").count() == 6
        page.fill("#find", "")
        page.locator(".leaves .faded").first.wait_for(state="detached")
        page.locator(".key").get_by_role("button", name="2", exact=True).click()
        assert page.locator(".leaves .faded").count() == 3

        # A cell leads to its two stories, and back.
        page.locator(".heat").click(position={"x": 40, "y": 6})
        page.wait_for_selector("h1:has-text(' beside ')")
        page.go_back()
        page.wait_for_selector(".leaves")


@pytest.mark.long
@needs_browser
def test_a_plane_shows_the_story_that_is_clicked_and_moves_by_keys(plane_file):
    with opened(plane_file) as page:
        page.wait_for_selector(".plane canvas")
        page.wait_for_timeout(300)
        points = carried(plane_file.read_text(encoding="utf-8"))["answers"]["map"]["points"]
        x, y = placed(points[4], points, page.locator(".plane canvas").bounding_box())
        page.mouse.move(x, y)
        tip = page.locator(".plane .tip")
        assert re.search(r"Tale \d+ \$x\$ <b>", tip.inner_text())
        assert "Anna met a" in tip.inner_text()
        page.mouse.click(x, y)
        page.wait_for_selector(".near-stories h3")
        assert page.locator(".near-stories .nearest li").count() == 3

        before = saved(page, "#save-svg")[1]
        page.locator(".plane canvas").focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(100)
        assert saved(page, "#save-svg")[1] != before


def placed(point, points, box):
    """The pixels of a point in a canvas that shows all, with a margin of 36 pixels."""
    across, up = ([each[axis] for each in points] for axis in "xy")
    width, height = max(across) - min(across), max(up) - min(up)
    size = min((box["width"] - 72) / width, (box["height"] - 72) / height)
    x = box["x"] + box["width"] / 2 + (point["x"] - min(across) - width / 2) * size
    y = box["y"] + box["height"] / 2 - (point["y"] - min(up) - height / 2) * size
    return x, y


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize("picture", ["tree", "plane"])
def test_pictures_are_saved_with_colors_cells_and_titles(tree_file, picture):
    with opened(tree_file) as page:
        page.wait_for_selector(".leaves")
        page.locator("#picture").select_option(picture)
        page.wait_for_timeout(300)
        name, drawing = saved(page, "#save-svg")
        assert name.startswith("map of ")
        assert name.endswith(".svg")
        text = drawing.decode()
        root = ElementTree.fromstring(text)
        assert {"#332288", "rgb(51, 34, 136)"} & set(re.findall(r'fill="([^"]+)"', text))
        if picture == "tree":
            assert "Tale 4 $x$ &lt;b&gt;" in text
            assert text.count("shape-rendering") > 3
        else:
            assert len(root.findall(".//{*}circle")) == 9
        name, content = saved(page, "#save-png")
        assert name.endswith(".png")
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5000


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize("place", ["map", "map?picture=plane", "groups", "agreement", "story/s4", "compare/s4/s3"])
@pytest.mark.parametrize(("theme", "language", "title"), [("light", "en-US", "narrlit"), ("dark", "de-DE", "narrlit")])
def test_a_file_fits_a_phone_in_both_languages(tree_file, place, theme, language, title):
    name = quote(ATTACK, safe="")
    options = {"viewport": {"width": 380, "height": 800}, "is_mobile": True, "color_scheme": theme, "locale": language}
    with opened(tree_file, f"#/{name}/{place}", **options) as page:
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        assert page.evaluate("document.documentElement.lang") == language[:2]
        assert title in page.title()
        assert page.locator("img").count() == 0


@pytest.mark.long
@needs_browser
def test_a_file_shows_groups_of_retellings(tree_file):
    answer = carried(tree_file.read_text(encoding="utf-8"))["answers"]["retellings"]
    with opened(tree_file) as page:
        page.get_by_role("link", name="Groups", exact=True).click()
        page.wait_for_selector(".groups h3")
        assert page.locator(".groups > li").count() == len(answer["groups"]) > 0
        assert page.locator("#threshold").count() == 0  # of a server, which computes them anew


@pytest.mark.long
@needs_browser
def test_a_file_keeps_its_list(tree_file):
    with opened(tree_file) as page:
        page.locator(".leaves button").first.click()
        page.get_by_role("button", name="Add to “My list”").first.click()
        page.get_by_role("heading", name="1 story on “My list”").wait_for()
        page.reload()
        page.get_by_role("heading", name="1 story on “My list”").wait_for()


def test_integers_on_the_page_keep_their_digits():
    frame, vectors = collection()
    posts = [1234567890123456789, 1234567890123456789, None, 2**53, 1890, 1890.0, 0.5, True, 7]
    frame["post"] = pd.Series(posts, dtype=object)
    page = map_page(arrange_stories(frame, similarities_of(vectors), k=2), "t", FACTS)
    values = [story["metadata"].get("post") for story in carried(page)["stories"]]
    big = "1234567890123456789"
    assert repr(values) == repr([big, big, None, 2**53, 1890, 1890, 0.5, "True", 7])


def test_the_words_of_decomposed_texts_name_their_group():
    texts = [unicodedata.normalize("NFD", f"Der König ritt zum Schloß {n}.") for n in range(3)] + [
        "Ein Fuchs lief."
    ] * 3
    [first, _] = name_groups(texts, np.array([0, 0, 0, 1, 1, 1]))
    assert "könig" in first
