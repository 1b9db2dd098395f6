"""Pairs to check, catalogs and exports over HTTP: decisions are kept, and their tables are data for other commands."""

import codecs
import io
import json
import shutil
from xml.etree import ElementTree

import httpx
import networkx as nx
import openpyxl
import pandas as pd
import pytest
from servers import running_server, wait_until

import narrlit
from narrlit.data.tales import sample_tales

pytestmark = pytest.mark.usefixtures("memoized_minilm")

PAIRS = "/collections/tales/pairs"
CATALOG = "/collections/open/catalog"
TYPE_OF = {tale["file_name"].removesuffix(".txt"): tale["atu"] for tale in sample_tales()}
LACKING = list(TYPE_OF)[::3]


@pytest.fixture(scope="module")
def open_index(tmp_path_factory, served_encoder):
    """An index of the 24 tales, of which eight lack their type."""
    rows = []
    for tale in sample_tales():
        id = tale["file_name"].removesuffix(".txt")
        rows.append({"id": id, "title": tale["title"], "text": tale["text"], "atu": tale["atu"], "name": id})
        if id in LACKING:
            rows[-1]["atu"] = None
    return narrlit.Index.create(
        tmp_path_factory.mktemp("open") / "open", pd.DataFrame(rows), narrlit.load("minilm")
    ).path


@pytest.fixture
def client(tmp_path, served_encoder, tales_index, open_index):
    """A client of a server with copies of the tales, and without decisions, which lie beside an index."""
    indexes = tuple(shutil.copytree(path, tmp_path / path.name) for path in (tales_index, open_index))
    with (
        running_server(tmp_path, served_encoder, model="minilm", indexes=indexes) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


def get(client, path, status=200, **params):
    answer = client.get(path, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


def decide(client, left, right, decision, reader="anna", status=204):
    body = {"left": left, "right": right, "decision": decision, "reader": reader}
    answer = client.put(f"{PAIRS}/decisions", json=body)
    assert answer.status_code == status, answer.text
    return answer


def undo(client, left, right, reader="anna"):
    body = {"left": left, "right": right, "reader": reader}
    return client.request("DELETE", f"{PAIRS}/decisions", json=body)


def decide_first(client, count, reader="anna"):
    """Decide the first pairs as the catalog does."""
    for pair in get(client, PAIRS, reader=reader, limit=count)["pairs"]:
        left, right = pair["left"]["id"], pair["right"]["id"]
        decide(client, left, right, "same" if TYPE_OF[left] == TYPE_OF[right] else "different", reader)


def catalog_of(client, column="atu", path=CATALOG):
    """The catalog, when it is computed."""

    def computed():
        answer = client.get(path, params={"column": column})
        assert answer.status_code in (200, 202), answer.text
        return answer.json() if answer.status_code == 200 else None

    return wait_until(computed)


# Pairs ---------------------------------------------------------------------------------------------------------------


def test_the_most_similar_pairs_are_listed_with_their_texts(client, tales_index):
    answer = get(client, PAIRS, reader="anna", limit=5)
    expected = narrlit.pairs_to_check(narrlit.Index(tales_index).collection())

    assert [(p["left"]["id"], p["right"]["id"]) for p in answer["pairs"]] == [
        (row.id_a, row.id_b) for row in expected.frame.head(5).itertuples()
    ]
    assert answer["pairs"][0]["left"]["text"].split()
    assert answer["pairs"][0]["decision"] is None
    assert (answer["decided"], answer["remaining"]) == (0, len(expected))


def test_a_decided_pair_is_not_listed_again_until_it_is_undone(client):
    first = get(client, PAIRS, reader="anna")["pairs"][0]
    left, right = first["left"]["id"], first["right"]["id"]
    before = get(client, PAIRS, reader="anna")["remaining"]
    decide(client, left, right, "unsure")

    answer = get(client, PAIRS, reader="anna")
    assert (answer["decided"], answer["remaining"]) == (1, before - 1)
    assert answer["pairs"][0] != first
    assert get(client, PAIRS, reader="ben")["pairs"][0] == first

    assert undo(client, right, left).status_code == 204
    assert get(client, PAIRS, reader="anna")["pairs"][0] == first
    assert undo(client, left, right).status_code == 400


def test_decisions_survive_a_new_start(client, tmp_path, served_encoder, tales_index):
    decide_first(client, 2)
    with running_server(tmp_path, served_encoder, model="minilm", indexes=(tmp_path / tales_index.name,)) as server:
        answer = httpx.get(f"{server.url}{PAIRS}", params={"reader": "anna"}, timeout=60).json()

    assert answer["decided"] == 2


@pytest.mark.parametrize(
    ("changes", "status", "parameter"),
    [
        ({"left": "nobody"}, 404, "story"),
        ({"decision": "maybe"}, 400, "decision"),
        ({"left": "ye_xian"}, 400, None),
        ({"reader": "x" * 300}, 400, "reader"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(client, changes, status, parameter):
    body = {"left": "cinderella", "right": "ye_xian", "decision": "same", "reader": "anna", **changes}
    answer = client.put(f"{PAIRS}/decisions", json=body)

    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["parameter"] == parameter
    assert get(client, PAIRS, reader="anna")["decided"] == 0


def test_tables_of_groups_triples_and_decisions_are_files_that_the_library_reads(client, tmp_path):
    decide_first(client, 30)
    for name, params in {
        "groups.csv": {"format": "csv"},
        "triples.jsonl": {"format": "jsonl"},
        "decisions.csv": {"format": "csv", "kind": "decisions"},
    }.items():
        answer = client.get(f"{PAIRS}/table", params=params)
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Disposition"].startswith("attachment")
        (tmp_path / name).write_bytes(answer.content)

    assert len(narrlit.read_stories(tmp_path / "groups.csv")) == 24
    assert set(narrlit.read_triples(tmp_path / "triples.jsonl").labels) == {0, 1}
    assert len(narrlit.read_decisions([tmp_path / "decisions.csv"])) == 30


def test_a_table_without_decisions_is_refused_with_what_to_do(client):
    answer = client.get(f"{PAIRS}/table", params={"format": "csv"})

    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert "no group of versions to write; decide for at least one pair" in message
    assert answer.json()["error"]["code"] == "no_version"
    triples = client.get(f"{PAIRS}/table", params={"format": "jsonl"})
    assert triples.json()["error"]["code"] == "no_triple"
    assert "/tmp" not in message


def test_two_readers_have_an_agreement(client):
    assert get(client, f"{PAIRS}/agreement")["alpha"] is None

    decide_first(client, 12, "anna")
    decide_first(client, 12, "ben")
    answer = get(client, f"{PAIRS}/agreement")
    assert (answer["readers"], answer["pairs"], answer["alpha"]) == (["anna", "ben"], 12, 1.0)


# Catalog -------------------------------------------------------------------------------------------------------------


def test_a_catalog_has_proposals_with_reasons_and_its_accuracy(client, open_index):
    answer = catalog_of(client)
    expected = narrlit.catalog(narrlit.Index(open_index).collection(), "atu")

    assert {proposal["id"] for proposal in answer["proposals"]} == set(LACKING)
    assert answer["decided"] == 0
    accuracy = expected.accuracy
    assert answer["accuracy"] == {
        "n": 16,
        "correct": round(16 * accuracy.value),
        "accuracy": accuracy.value,
        "interval": [accuracy.low, accuracy.high],
    }
    assert answer["baseline"] == 0.125
    best = answer["proposals"][0]["values"][0]
    assert 0 < best["probability"] < 1
    assert {"id", "title", "metadata", "similarity"} == set(best["stories"][0])


def test_accepted_and_rejected_values_are_decided_and_fill_a_table(client):
    catalog_of(client)
    for id, value, accepted in (("cinderella", "510A", True), (LACKING[1], None, False)):
        body = {"id": id, "column": "atu", "value": value, "accepted": accepted}
        assert client.put(f"{CATALOG}/decisions", json=body).status_code == 204

    answer = catalog_of(client)
    assert answer["decided"] == 2
    assert {proposal["id"] for proposal in answer["proposals"]} == set(LACKING[2:]) - {"cinderella"}

    table = pd.read_csv(io.BytesIO(client.get(f"{CATALOG}/table", params={"column": "atu"}).content)).set_index("id")
    assert table.loc["cinderella", "atu"] == "510A"
    assert table.loc["cinderella", "atu_source"] == "accepted"
    assert table["atu"].isna().sum() == 7


def test_a_withdrawn_value_is_proposed_again(client):
    before = catalog_of(client)
    body = {"id": "cinderella", "column": "atu", "value": "510A", "accepted": True}
    assert client.put(f"{CATALOG}/decisions", json=body).status_code == 204
    assert catalog_of(client)["decided"] == 1

    withdrawn = client.request("DELETE", f"{CATALOG}/decisions", json={"id": "cinderella", "column": "atu"})
    assert withdrawn.status_code == 204
    assert catalog_of(client) == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"id": "nobody", "column": "atu", "value": "510A", "accepted": True}, 404),
        ({"id": "cinderella", "column": "type", "value": "510A", "accepted": True}, 400),
        ({"id": "cinderella", "column": "atu", "value": None, "accepted": True}, 400),
        ({"id": "ye_xian", "column": "atu", "value": "510A", "accepted": True}, 409),
    ],
)
def test_a_value_that_can_not_be_decided_is_refused(client, body, status):
    answer = client.put(f"{CATALOG}/decisions", json=body)
    assert answer.status_code == status, answer.text


def test_a_column_that_can_not_be_learned_is_refused_when_that_is_known(client):
    get(client, CATALOG, 400, column="type")

    def refused():
        answer = client.get(CATALOG, params={"column": "name"})
        return answer if answer.status_code != 202 else None

    for _ in range(2):  # it is tried again
        answer = wait_until(refused)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert "no two stories have the same value" in error["message"]
        assert (error["code"], error["values"]) == ("no_shared_value", {"column": "name"})


# Exports -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["csv", "xlsx", "graphml", "palladio", "svg", "bibtex", "ris", "csl", "txt"])
def test_chosen_stories_are_exported(client, format, tmp_path):
    ids = ["ye_xian", "cinderella", "rhodopis"]
    answer = client.post("/collections/tales/export", json={"ids": ids, "format": format})

    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''tales.")
    content = answer.content
    if format == "csv":
        assert content.startswith(codecs.BOM_UTF8)  # Excel reads UTF-8 by it
        assert pd.read_csv(io.BytesIO(content))["id"].tolist() == ids
    elif format == "xlsx":
        assert openpyxl.load_workbook(io.BytesIO(content)).active.max_row == 4
    elif format == "graphml":
        assert set(nx.parse_graphml(content.decode()).nodes) == set(ids)
    elif format == "svg":
        assert b"Cinderella" in content
        assert b"<script" not in content
    elif format == "palladio":
        table = pd.read_csv(io.BytesIO(content))
        assert list(table) == ["Story", "Similar story", "Similarity", "id", "country", "atu"]
        assert set(table["Story"]) == set(table["Similar story"]) == {"Ye Xian", "Cinderella", "Rhodopis"}
    elif format == "bibtex":
        assert content.count(b"@misc{") == 3
    elif format == "ris":
        assert content.count(b"TY  - CHAP\r\n") == content.count(b"ER  - \r\n") == 3
    elif format == "csl":
        assert [item["title"] for item in json.loads(content)] == ["Ye Xian", "Cinderella", "Rhodopis"]
    else:
        assert content.decode().splitlines()[0] == "1. Ye Xian (ye_xian)"


def test_a_comparison_is_saved_as_tei_with_the_links_that_are_explained(client):
    body = {"left": {"id": "cinderella"}, "right": {"id": "ye_xian"}}
    explained = client.post("/collections/tales/explain", json=body).json()
    answer = client.post("/collections/tales/alignment", json=body)
    assert answer.headers["Content-Disposition"].endswith("cinderella-ye_xian.xml")
    tei = {"tei": "http://www.tei-c.org/ns/1.0"}
    root = ElementTree.fromstring(answer.content)
    passages = root.findall(".//tei:seg", tei)
    assert len(passages) == len(explained["left"]["passages"]) + len(explained["right"]["passages"])
    links = {link.get("target"): float(link.get("n")) for link in root.iterfind(".//tei:link", tei)}
    for link in explained["links"]:
        target = f"#a.{link['left'] + 1} #b.{link['right'] + 1}"
        assert links[target] == pytest.approx(link["share"] / explained["score"], abs=1e-4)
    assert sum(links.values()) == pytest.approx(1, abs=1e-2)
    assert [title.text for title in root.iterfind(".//tei:bibl/tei:title", tei)] == ["Cinderella", "Ye Xian"]
    assert [note.text for note in root.iterfind(".//tei:bibl/tei:note", tei)] == [
        "country: France; atu: 510A",
        "country: China; atu: 510A",
    ]
    text = {"left": {"text": "A shoe."}, "right": {"id": "ye_xian"}}
    assert client.post("/collections/tales/alignment", json=text).status_code == 404


def test_an_export_that_can_not_be_made_is_refused(client):
    for body, status in (
        ({"ids": ["nobody"], "format": "csv"}, 404),
        ({"ids": [], "format": "csv"}, 400),
        ({"ids": ["cinderella"], "format": "svg"}, 400),
        ({"ids": ["cinderella"], "format": "pdf"}, 400),
    ):
        answer = client.post("/collections/tales/export", json=body)
        assert answer.status_code == status, answer.text
        assert json.loads(answer.content)["error"]["message"]
