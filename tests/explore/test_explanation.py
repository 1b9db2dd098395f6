"""Explanations: links whose shares add up to the similarity, in a collection and outside."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from browser import Browser
from refusals import refused

from narrlit import Collection, explain, load
from narrlit.data.schema import Story, Views
from narrlit.data.tales import sample_tales
from narrlit.explore.explanation import Explanation
from narrlit.explore.explanation_page import parallel_edition
from narrlit.explore.faithfulness import DeletionCurve, _remaining
from narrlit.explore.matched_pair import MatchedPair
from narrlit.measures.corrections import centered
from narrlit.measures.matching import match_score, matches
from narrlit.preprocessing.passages import split_passages

pytestmark = pytest.mark.usefixtures("memoized_minilm")

ROUNDING = 1e-6  # of sums of some twenty shares in float32
ATTACK = "<img src=x onerror=alert(1)></p><script>alert(2)</script>{{ 7 * 7 }}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
    assert "What remains without passages" in result.html


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
    stories = (Story("One", " ".join(texts), views), Story(ATTACK, " ".join(texts), views))
    curve = DeletionCurve(pd.DataFrame([{"removed": x, "score": 0.1, "score_random": 0.2} for x in (0, 0.5)]))
    curve.frame["cosine"] = curve.frame["cosine_random"] = 0.5
    pair = MatchedPair(stories, (texts, texts), weights, (0.1, 0.2), (24, "sample tales"), (1, 2), curve)
    return Explanation("m", pair, pair)


def test_a_page_has_every_passage_once_and_every_link():
    pair = hostile().pair
    rows = parallel_edition(pair)
    for side, texts in enumerate(pair.passages):
        assert [cell.text for row in rows for cell in row.sides[side]] == texts

    shown = {row.link.ends for row in rows if row.link is not None}
    attached = set()
    for row in rows:
        for cell in row.sides[0]:
            attached |= {link.ends for link in cell.links}

    ends = set(zip(pair.links.passage_a, pair.links.passage_b, strict=True))

    assert {(1, 2), (3, 3)} <= shown
    assert shown.isdisjoint(attached)
    assert shown | attached == ends
    assert (2, 1) in attached


def test_html_is_escaped_and_runs_no_script(tmp_path):
    result = hostile()
    for page in (result.html, result._repr_html_()):
        assert "<script" not in page
        assert "<img" not in page
        assert " id=" not in page
        assert "&lt;img" in page
        assert "{{ 7 * 7 }}" in page
        assert page.count("They rest.") == 4
    assert "default-src 'none'" in result.html
    assert "<html" not in result._repr_html_()

    result.write(tmp_path / "e.html")
    assert (tmp_path / "e.html").read_text(encoding="utf-8") == result.html


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_in_a_browser(width, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(hostile().html, encoding="utf-8")
    page = Browser(CHROMIUM, tmp_path / "profile")
    try:
        page("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        page("Page.navigate", url=path.as_uri())
        page.wait("document.querySelector('.nx-link') !== null && document.readyState == 'complete'")
        assert page.value("document.documentElement.scrollWidth <= innerWidth")
        columns = page.value(
            "getComputedStyle(document.querySelector('.nx-link')).gridTemplateColumns.split(' ').length"
        )
        assert columns == (3 if width > 640 else 1)
        page.value("document.querySelector('.nx-m2-1').scrollIntoView({block: 'center'})")
        box = page.value("(({x, y}) => [x, y])(document.querySelector('.nx-m2-1').getBoundingClientRect())")
        page("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + 20, y=box[1] + 8)
        outlined = (
            "[...document.querySelectorAll('.nx-m2-1')].filter((e) => getComputedStyle(e).outlineStyle == 'solid')"
        )
        assert page.wait(f"{outlined}.length") == 4
        assert all(url.startswith(("file:", "data:")) for url in page.requested())
        assert not [e for e in page.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    finally:
        page.close()
