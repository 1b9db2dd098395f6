"""Explanations: links whose shares add up to the similarity, in a collection and outside."""

import itertools
from dataclasses import replace
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from page_files import CHROMIUM, carried, needs_browser, opened
from refusals import refused

from narrlit import Collection, explain, load
from narrlit.data.schema import Story, Views
from narrlit.data.tales import sample_tales
from narrlit.explore.explanation import Explanation
from narrlit.explore.faithfulness import DeletionCurve, _remaining
from narrlit.explore.matched_pair import MatchedPair
from narrlit.measures.corrections import centered
from narrlit.measures.matching import match_score, matches
from narrlit.pages import bundle
from narrlit.preprocessing.passages import split_passages

pytestmark = pytest.mark.usefixtures("memoized_minilm")

TEI, XML = "http://www.tei-c.org/ns/1.0", "http://www.w3.org/XML/1998/namespace"
ROUNDING = 1e-6  # of sums of some twenty shares in float32
ATTACK = "<img src=x onerror=alert(1)></p><script>alert(2)</script>{{ 7 * 7 }}"
CHASE = "Guards chased the girl through the snow all night, until she knocked at the door of a monastery in the hills."
BREAD = "A hungry girl stole a loaf of bread from the kitchen of a rich lord while his servants were at their dinner."
MONK = "An old monk hid her in his cellar behind the barrels and told the guards that he had seen nobody that night."
LOAF = "In a town by the sea a poor child took a loaf from the table of a nobleman, for she had not eaten in days."
HUNT = "The soldiers hunted the small thief from street to street until the morning came, but they did not find her."
PRIEST = "A priest had opened the door of his church to her, and he swore that nobody had come in during the night."
ROCKET = "Two engineers built a rocket in a hangar in the desert, and a general came to see it fly for the first time."
ANCHOR = f"{BREAD} {CHASE} {MONK}"
A = f"{LOAF} {HUNT} {PRIEST}"
B = f"{ROCKET} It exploded above the dunes."


@pytest.fixture(scope="module")
def encoder():
    return load("minilm")


@pytest.fixture(scope="module")
def tales(encoder):
    """Ten of the sample tales, a copy of one of them among them."""
    rows = [{"id": tale["file_name"][:-4], "title": tale["title"], "text": tale["text"]} for tale in sample_tales()[:9]]
    return Collection.of(pd.DataFrame([*rows, rows[2] | {"id": "copy"}]), encoder)


@pytest.fixture(scope="module")
def triple(encoder):
    stories = [Story(name, text) for name, text in (("Snow", ANCHOR), ("Loaf", A), ("Rocket", B))]
    return explain(*stories, encoder=encoder)


def scores_of(collection):
    """Match scores (N, N) of a collection, after subtracting the mean of its passages."""
    mean = np.concatenate([story.vectors for story in collection.passages]).mean(axis=0)
    vectors = [centered(story.vectors, mean) for story in collection.passages]
    return np.array([[match_score(one, other) for other in vectors] for one in vectors])


def test_shares_and_hubness_add_up_to_the_similarity_in_a_collection(tales):
    scores = scores_of(tales)
    shown = tales.similarities.matrix()
    ids = tales.frame["id"].tolist()
    for row, column in ((0, 1), (1, 0), (2, 9), (4, 7)):
        result = explain(ids[row], ids[column], stories=tales)
        assert result.table()["share"].sum() == pytest.approx(scores[row, column], abs=ROUNDING)
        assert result.similarity == pytest.approx(shown[row, column], abs=ROUNDING)
        for end, hub in zip((row, column), result.pair.hubness, strict=True):
            assert hub == pytest.approx(np.delete(scores[end], end).mean(), abs=ROUNDING)  # nine others, of ten at most
        others = np.delete(shown, [row, column], axis=1)
        assert result.pair.closer == tuple((others[end] > shown[row, column]).sum() for end in (row, column))
        terms = [value for value, _ in result.pair.terms]
        assert terms[0] + terms[1] == pytest.approx(terms[2])
        assert terms[2] == pytest.approx(result.similarity)


def test_a_text_is_compared_as_a_query_of_the_collection(tales, encoder):
    result = explain(ANCHOR, tales.frame["id"][3], stories=tales)
    mean = np.concatenate([story.vectors for story in tales.passages]).mean(axis=0)
    query = centered(encoder.passages([ANCHOR])[0].vectors, mean)
    scores = [match_score(query, centered(story.vectors, mean)) for story in tales.passages]

    assert result.pair.score == pytest.approx(scores[3], abs=ROUNDING)
    assert result.pair.hubness[0] == pytest.approx(np.mean(scores), abs=ROUNDING)
    assert result.pair.background == (9, "other stories of the collection")
    similarities = np.array(scores) - tales.similarities.hubs / 2  # each minus half the hubness of the text
    assert result.pair.closer[0] == (np.delete(similarities, 3) > similarities[3]).sum()


def test_links_are_best_matches_in_their_direction(triple, encoder):
    pair = triple.pair
    passages = encoder.passages([ANCHOR, A])
    tale_passages = encoder.passages([tale["text"] for tale in sample_tales()])
    mean = np.concatenate([story.vectors for story in tale_passages]).mean(axis=0)
    weights = matches(*(centered(story.vectors, mean) for story in passages))

    assert pair.weights == pytest.approx(weights, abs=ROUNDING)

    for link in pair.links.itertuples():
        i, j = link.passage_a - 1, link.passage_b - 1
        assert link.text_a == split_passages(ANCHOR)[i]
        assert link.text_b == split_passages(A)[j]
        assert link.match == pytest.approx(weights[i, j], abs=ROUNDING)
        best_of_a = weights[i, j] == weights[i].max()
        best_of_b = weights[i, j] == weights[:, j].max()
        assert (
            link.direction
            == {(True, True): "both", (True, False): "a to b", (False, True): "b to a"}[best_of_a, best_of_b]
        )
        parts = best_of_a / len(weights) + best_of_b / weights.shape[1]
        assert link.share == pytest.approx(weights[i, j] * parts / 2, abs=ROUNDING)

    mutual = pair.links[pair.links.direction == "both"]

    assert set(zip(mutual.passage_a, mutual.passage_b, strict=True)) == {(1, 1), (2, 2), (3, 3)}
    assert pair.links["share"].is_monotonic_decreasing


def test_links_of_one_direction_are_named_by_it():
    weights = np.array([[0.9, 0.6], [0.8, 0.1]])
    stories = (Story("One", "a"), Story("Two", "b"))
    pair = MatchedPair(stories, (["1", "2"], ["3", "4"]), weights, None, (20, "others"), (0, 1))
    rows = pair.links[["passage_a", "passage_b", "direction"]].to_numpy().tolist()

    assert rows == [[1, 1, "both"], [2, 1, "a to b"], [1, 2, "b to a"]]
    assert pair.verdict("m") == "m finds One and Two much alike: similarity 0.800."
    assert pair.rank == "Better matches among 20 others: 0 for One, 1 for Two."


def test_a_margin_is_the_sum_of_links_of_both_stories(triple, encoder):
    with_a = explain(ANCHOR, A, encoder=encoder)
    with_b = explain(ANCHOR, B, encoder=encoder)
    assert triple.margin == pytest.approx(with_a.similarity - with_b.similarity, abs=ROUNDING)
    assert triple.margin > 0.1

    links = triple.table()
    assert links["share"].sum() == pytest.approx(triple.margin, abs=ROUNDING)
    assert (links[links.story == "Rocket"]["share"] < 0).all()

    margins = triple.margins
    assert margins["difference"].sum() == pytest.approx(triple.margin, abs=ROUNDING)
    assert margins["difference"].is_monotonic_decreasing

    for row in margins.itertuples():
        own = triple.pair.links[triple.pair.links.passage_a == row.passage]
        assert row.share_a == pytest.approx(own["share"].sum(), abs=ROUNDING)
        assert row.text == split_passages(ANCHOR)[row.passage - 1]

    with refused("margins_need_third"):
        _ = with_a.margins
    assert np.isnan(with_a.margin)


def test_passages_of_a_collection_are_not_embedded_again(tales, monkeypatch):
    ids = tales.frame["id"]
    before = explain(ids[0], ids[1], stories=tales).similarity

    def embed(*arguments):
        raise AssertionError("the encoder was asked again")

    monkeypatch.setattr("narrlit.models.embedding.embed_stories", embed)
    monkeypatch.setattr(type(tales.encoder), "embed_prepared", embed)

    assert explain(tales[ids[0]], tales[ids[1]], stories=tales).similarity == before


def test_another_measure_of_the_collection_is_named(tales):
    ids = tales.frame["id"]
    by_vectors = replace(tales, measure="csls")
    result = explain(ids[0], ids[1], stories=by_vectors)
    assert result.findings[-1] == "The collection compares by csls; this is its similarity by passages."
    assert len(explain(ids[0], ids[1], stories=tales).findings) == 2


def test_sample_tales_of_the_same_type_are_no_background(encoder):
    first, second, *_ = sample_tales()
    assert first["atu"] == second["atu"]
    result = explain(first["text"], second["text"], encoder=encoder)
    assert result.pair.background == (21, "sample tales")


def test_the_text_opens_with_the_verdict_and_stays_narrow(triple, tales):
    lines = str(triple).splitlines()
    assert lines[0].startswith("minilm finds Snow closer to Loaf than to Rocket: similarity 0.")
    assert lines[2] == "Passages of Snow that contribute most to the margin of Loaf, by difference of shares:"
    assert lines[3].startswith("+0.")
    assert max(map(len, lines)) <= 100

    ids = tales.frame["id"]
    result = explain(ids[0], ids[1], stories=tales)
    text = str(result)
    titles = f"{tales.frame['title'][0]} and {tales.frame['title'][1]}"

    assert text.startswith(f"minilm gives {titles} the similarity {result.similarity:.3f}.\n")  # of eight others
    assert f"{-sum(result.pair.hubness) / 2:.3f}  hubness" in text

    rest = result.table()["share"][6:]
    assert f"{rest.sum():.3f} in {len(rest)} weaker links" in text
    assert result.findings[0] == text.splitlines()[0]


def test_views_of_a_file_are_shown(encoder, make):
    rows = [{"text": text, "theme": "Want.", "plot_events": ["One.", "Two."], "outcome": "Flight."} for text in (A, B)]
    result = explain(A, B, encoder=encoder, views=make("v.jsonl", rows))
    assert str(result).count("Flight.") == 2
    with refused("stories_without_views", name="stories", n=1, stories=2):
        explain(A, ANCHOR, encoder=encoder, views=make("v.jsonl", rows))


def test_what_cannot_be_explained_is_refused(encoder, tales, monkeypatch):
    with refused("blank_text", id="B"):
        explain(ANCHOR, " \n", encoder=encoder)
    with refused("collection_has_model"):
        explain("copy", ANCHOR, stories=tales, encoder=encoder)

    reads_views = type("Facts", (), {"reads": "views"})()
    monkeypatch.setattr(type(encoder), "facts", reads_views)
    with refused("model_without_passages"):
        explain(ANCHOR, A, encoder=encoder)


def test_the_same_short_text_twice_is_one_link(encoder):
    result = explain("A king fell ill.", "A king fell ill.", encoder=encoder)
    assert result.table()[["share", "direction"]].to_numpy().tolist() == [[pytest.approx(1, abs=1e-5), "both"]]
    assert [story.id for story in result.pair.stories] == ["A", "B"]
    assert "1 link between 1 and 1 passages" in str(result)


def test_leaving_out_strong_passages_is_compared_with_random_ones(encoder):
    result = explain(ANCHOR, A, encoder=encoder, check=True)
    curve = result.pair.deletion.table()
    assert curve["removed"].tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert curve["score"][0] == pytest.approx(result.pair.score, abs=ROUNDING)

    vectors = encoder.embed([ANCHOR, A])
    assert curve["cosine"][0] == pytest.approx(vectors[0] @ vectors[1], abs=1e-5)
    assert curve["score_random"][0] == pytest.approx(curve["score"][0])

    named = result.pair.shares
    left_a = np.argsort(-named.sum(axis=1))[1:]
    left_b = np.argsort(-named.sum(axis=0))[1:]
    texts = [
        " ".join(split_passages(text)[row] for row in sorted(rows)) for text, rows in ((ANCHOR, left_a), (A, left_b))
    ]
    shortened = encoder.embed(texts)

    assert curve["cosine"][1] == pytest.approx(shortened[0] @ shortened[1], abs=1e-5)
    assert "the score falls from" in str(result).replace("\n", " ")
    shown = carried(result.html)["pairs"]["0-1"]["deletion"]
    assert [row["cosine"] for row in shown] == curve["cosine"].tolist()


def test_at_least_one_passage_is_left_out_and_one_remains():
    order = np.array([3, 0, 2, 1])
    assert _remaining(order, 0).tolist() == [0, 1, 2, 3]
    assert _remaining(order, 0.1).tolist() == [0, 1, 2]
    assert _remaining(order, 0.5).tolist() == [1, 2]
    assert _remaining(np.array([0]), 0.5).tolist() == [0]


def test_the_score_falls_faster_without_passages_of_large_shares(encoder, monkeypatch):
    monkeypatch.setattr("narrlit.explore.faithfulness.FRACTIONS", (0.0, 0.2, 0.4))
    tales = {tale["file_name"][:-4]: tale["text"] for tale in sample_tales()}
    result = explain(tales["feather_robe"], tales["swan_maiden"], encoder=encoder, check=True)
    curve = result.pair.deletion.table().iloc[1:]

    assert (curve["score"] < curve["score_random"] - 0.02).all()
    assert curve["score"].is_monotonic_decreasing


def hostile():
    """Linked and lone passages with markup in them, without a model."""
    texts = [f"Sentence {number} {ATTACK}." for number in range(4)]
    weights = np.zeros((4, 4))
    weights[0, 1], weights[1, 0], weights[2, 2] = 0.8, 0.7, 0.3
    views = Views(ATTACK, "They walk.", "They rest.")
    stories = [Story(id, " ".join(texts), views) for id in ("One", ATTACK, f"Other {ATTACK}")]
    curve = DeletionCurve(pd.DataFrame([{"removed": x, "score": 0.1, "score_random": 0.2} for x in (0, 0.5)]))
    curve.frame["cosine"] = curve.frame["cosine_random"] = 0.5
    fields = ((texts, texts), weights, (0.1, 0.2), (24, "other stories of the collection"), (1, 2), curve)
    return Explanation(
        "m", MatchedPair((stories[0], stories[1]), *fields), MatchedPair((stories[0], stories[2]), *fields)
    )


@pytest.fixture
def page_file(tmp_path):
    hostile().write(tmp_path / "page.html")
    return tmp_path / "page.html"


def test_a_file_carries_texts_and_no_markup():
    result = hostile()
    assert "<img" not in result.html
    assert "{{ 7 * 7 }}" in result.html
    assert "default-src 'none'" in result.html

    data = carried(result.html)
    assert [story["text"].count(ATTACK) for story in data["stories"]] == [4, 4, 4]
    links = data["pairs"]["0-1"]["links"]
    shares = result.pair.links["share"]
    assert [link[2] for link in links] == pytest.approx(shares.tolist(), abs=1e-4)


def test_two_stories_are_written_as_tei_with_their_links(tmp_path):
    pair = hostile().pair
    Explanation("m", pair).write(tmp_path / "pair.xml")

    root = ElementTree.parse(tmp_path / "pair.xml").getroot()
    segments = {each.get(f"{{{XML}}}id"): each.text for each in root.iter(f"{{{TEI}}}seg")}
    links = [each.get("target") for each in root.iter(f"{{{TEI}}}link")]
    assert segments["a.1"] == pair.passages[0][0]
    assert links == [f"#a.{row.passage_a} #b.{row.passage_b}" for row in pair.links.itertuples()]
    with refused("alignment_of_two"):
        hostile().write(tmp_path / "triple.xml")


def test_links_are_written_as_a_table(tmp_path):
    hostile().write(tmp_path / "links.jsonl")
    rows = pd.read_json(tmp_path / "links.jsonl", lines=True)
    assert rows["passage_a"].tolist() == hostile().table()["passage_a"].tolist()
    with refused("wrong_suffix"):
        hostile().write(tmp_path / "links.docx")


def test_a_notebook_shows_the_page_in_a_frame():
    shown = hostile()._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<img" not in shown
    assert "<script" not in shown


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize("width", [1280, 380])
def test_a_triple_says_which_story_is_closer_passage_by_passage(width, page_file):
    with opened(page_file, viewport={"width": width, "height": 900}, is_mobile=width < 600) as page:
        assert page.locator("h1").inner_text() == f"One beside {ATTACK} and Other {ATTACK}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("img").count() == 0
        rows = page.locator("main table").first.locator("tbody tr")
        assert rows.count() == 4
        differences = rows.locator("td:last-child").all_inner_texts()
        assert [text.removeprefix("Difference").strip() for text in differences] == ["0.000"] * 4
        assert page.get_by_role("heading", name="What remains without passages").count() == 2
        assert page.get_by_text("They rest.").count() == 4


@pytest.mark.long
@needs_browser
def test_both_texts_have_every_passage_once_and_every_link(page_file):
    pair = hostile().pair
    place = f"#/explanation/compare/One/{quote(ATTACK, safe='')}?view=texts"
    with opened(page_file, place) as page:
        for side, number in (("first", ":nth-child(1)"), ("second", ":nth-child(3)")):
            passages = page.locator(f".edition .row:not(.heads) > {number} .passage").all_inner_texts()
            assert [text.lstrip("1234 ") for text in passages] == pair.passages[side == "second"]
        others = set(page.locator(".also").evaluate_all("parts => parts.map((part) => part.dataset.link)"))
        assert page.locator(".row.linked").count() + len(others) == len(pair.links)
        assert "1-0" in others
        page.locator(".also").first.hover()
        assert page.locator(".also.partner").count() == 2


@pytest.mark.long
@needs_browser
def test_links_in_a_row_of_their_own_have_the_greatest_sum_of_shares_without_crossing():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as program:
        browser = program.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page()
        page.evaluate(f"() => {{ {bundle('parallel.js')}; window.inOrder = modules['parallel.js'].inOrder; }}")
        for seed in range(6):
            gains = np.maximum(np.random.default_rng(seed).normal(size=(4, 5)), 0)
            links = [{"left": i, "right": j, "share": gains[i, j]} for i, j in np.argwhere(gains > 0).tolist()]
            chosen = page.evaluate("(links) => inOrder(links)", links)
            assert sum(link["share"] for link in chosen) == pytest.approx(greatest_sum(gains))
            for link, later in itertools.pairwise(chosen):
                assert link["left"] < later["left"]
                assert link["right"] < later["right"]
        browser.close()


def greatest_sum(gains):
    """The greatest sum of gains in increasing rows and columns, by trying all."""
    greatest = 0.0
    for size in range(1, 5):
        for rows in itertools.combinations(range(4), size):
            for columns in itertools.combinations(range(5), size):
                greatest = max(greatest, gains[list(rows), list(columns)].sum())
    return greatest


@pytest.mark.long
@needs_browser
def test_a_notebook_frame_follows_links_inside_itself(page_file):
    notebook = page_file.with_name("notebook.html")
    notebook.write_text(f"<!doctype html><main><h1>notebook</h1>{hostile()._repr_html_()}</main>", encoding="utf-8")
    with opened(notebook) as page:
        frame = page.frame_locator("iframe")
        frame.locator("h1").wait_for()
        frame.locator("a.swap").first.click()
        frame.locator("h1", has_text=f"{ATTACK} beside One").wait_for()
        assert page.locator("main > h1").inner_text() == "notebook"
