"""Collections over HTTP answer what the library does."""

import io
import shutil
import subprocess
import sys
import unicodedata

import httpx
import numpy as np
import openpyxl
import pandas as pd
import pytest
from refusals import refused
from servers import running_server, wait_until
from sklearn.manifold import trustworthiness

import narrlit
from narrlit.explore.agreement import neighbor_agreement
from narrlit.explore.matched_pair import likeness
from narrlit.explore.story_map import in_groups, plane_points
from narrlit.serving.imports import collection_name
from narrlit.serving.shelf import Shelf

COPY = "An old king sends his three sons to find the water of life, and the youngest brings it home."


@pytest.fixture(scope="module")
def client(tmp_path_factory, served_encoder, tales_index):
    """A client of a server with the tales, which are only read, and a small collection of its own."""
    data = tmp_path_factory.mktemp("data")
    frame = pd.DataFrame(
        {
            "text": [COPY, COPY + " ", "A bank lowers its rates.", "A diver seeks a pearl in the sea."],
            "id": ["king", "king/copy", "bank", "diver"],
            "title": ["The King", "The King again", "", "The Diver"],
            "year": [1812, 1857, None, 1900],
            "author's name": ["G", "G", "=cmd()", None],
        }
    )
    narrlit.Index.create(data / "collections" / "small ones", frame, narrlit.load("minilm"))
    with (
        running_server(data, served_encoder, model="minilm", indexes=(tales_index,)) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        client.data = data
        yield client


def get(client, path, status=200, **params):
    answer = client.get(path, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


def post(client, path, status=200, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_collections_are_listed_with_the_values_of_their_columns(client):
    collections = {collection["name"]: collection for collection in get(client, "/collections")}
    small, tales = collections["small ones"], collections["tales"]
    assert (small["name"], small["stories"], tales["name"], tales["stories"]) == ("small ones", 4, "tales", 24)
    assert (tales["model"], tales["measure"], tales["import"]) == ("minilm", "passages", None)
    types = next(column for column in tales["columns"] if column["name"] == "atu")
    assert (types["kind"], types["distinct"]) == ("text", 8)
    assert types["values"][0]["count"] == 3
    assert small["columns"][0] == {
        "name": "year",
        "kind": "number",
        "values": [{"value": 1812.0, "count": 1}, {"value": 1857.0, "count": 1}, {"value": 1900.0, "count": 1}],
        "distinct": 3,
    }
    assert get(client, "/collections/tales") == tales


def test_the_settings_name_limits_and_no_path(client):
    answer = get(client, "/settings")
    assert answer["model"] == "minilm"
    assert ".docx" in answer["extensions"]
    assert answer["limits"]["upload_bytes"] > 0


def test_stories_are_listed_in_parts_by_ids_and_by_columns(client):
    part = get(client, "/collections/tales/stories", offset=20, limit=10)
    assert (part["total"], len(part["stories"])) == (24, 4)
    assert {"id", "title", "words", "characters", "metadata"} == set(part["stories"][0])

    chosen = get(client, "/collections/tales/stories", filter=["atu:510A"])
    assert [story["title"] for story in chosen["stories"]] == ["Cinderella", "Ye Xian", "Rhodopis"]

    ids = [story["id"] for story in chosen["stories"]]
    backwards = get(client, "/collections/tales/stories", ids=",".join([*reversed(ids), "unknown"]))
    assert [story["id"] for story in backwards["stories"]] == ids[::-1]
    years = get(client, "/collections/small ones/stories", filter=["year:1812", "year:1857.0"])
    assert [story["id"] for story in years["stories"]] == ["king", "king/copy"]


def test_stories_are_sorted_by_columns_titles_and_lengths(client):
    def ids(sort):
        return [story["id"] for story in get(client, "/collections/small ones/stories", sort=sort)["stories"]]

    assert ids("year") == ["king", "king/copy", "diver", "bank"]  # a bank has no year
    assert ids("-year") == ["diver", "king/copy", "king", "bank"]
    assert ids("-words") == ["king", "king/copy", "diver", "bank"]
    assert ids("title") == ["bank", "diver", "king", "king/copy"]
    refusal = client.get("/collections/small ones/stories", params={"sort": "age"}).json()["error"]
    assert (refusal["code"], refusal["values"]) == ("column_not_found", {"column": "age"})


def test_a_story_is_read_with_its_nearest(client, tales_index):
    index = narrlit.Index(tales_index)
    id = get(client, "/collections/tales/stories", filter=["atu:510A"])["stories"][0]["id"]
    story = get(client, f"/collections/tales/stories/{id}")
    expected = index.like(id).table()

    assert [near["id"] for near in story["nearest"]] == expected["id"].tolist()
    assert np.allclose([near["similarity"] for near in story["nearest"]], expected["similarity"], atol=1e-6)
    assert len(story["text"].split()) == story["words"]
    assert get(client, "/collections/small ones/stories/king%2Fcopy")["title"] == "The King again"


def test_the_rank_of_a_similar_story_is_that_in_the_whole_collection(client, tales_index):
    similarities = narrlit.Index(tales_index).collection().similarities.matrix()
    ids = narrlit.Index(tales_index).collection().frame["id"].tolist()
    row = ids.index("swan_maiden")
    body = {"like": "swan_maiden", "filters": {"atu": ["400", "510A"]}}
    hits = post(client, "/collections/tales/search", **body)["hits"]
    assert len(hits) == 5
    for hit in hits:
        other = ids.index(hit["id"])
        nearer = [np.delete(similarities[one], [row, other]) > similarities[row, other] for one in (row, other)]
        closer = [int(each.sum()) for each in nearer]
        assert hit["standing"] == {"rank": closer[0] + 1, "of": 23, "alike": likeness(tuple(closer), 22)}
        sides = {"left": {"id": "swan_maiden"}, "right": {"id": hit["id"]}}
        explained = post(client, "/collections/tales/explain", **sides)
        assert (explained["closer"], explained["others"]) == (closer, 22)
        assert explained["alike"] == hit["standing"]["alike"]


def test_hits_of_a_text_are_ranked_among_the_stories_that_are_searched(client):
    found = post(client, "/collections/tales/search", query="A girl loses a shoe.", k=3)["hits"]
    assert [hit["standing"] for hit in found] == [{"rank": rank, "of": 24, "alike": None} for rank in (1, 2, 3)]
    found = post(client, "/collections/tales/search", query="A girl loses a shoe.", filters={"atu": ["510A"]})["hits"]
    assert [(hit["standing"]["rank"], hit["standing"]["of"]) for hit in found] == [(1, 3), (2, 3), (3, 3)]
    small = post(client, "/collections/small ones/search", query="the water of life", measure="cosine")["hits"]
    assert small[0]["standing"] == {"rank": 1, "of": 4, "alike": None}


def test_retellings_are_the_groups_of_the_library(client, tales_index):
    expected = narrlit.pairs(narrlit.Index(tales_index).collection())
    wait_until(lambda: client.get("/collections/tales/retellings").status_code == 200)
    answer = get(client, "/collections/tales/retellings")
    groups = expected.groups()
    assert answer["threshold"] == pytest.approx(expected.threshold)
    assert [[story["id"] for story in group["stories"]] for group in answer["groups"]] == [
        members["id"].tolist() for _, members in groups.groupby("group")
    ]
    assert answer["typical"] == pytest.approx(groups["similarity"].median())
    assert (answer["chosen"], answer["chance"]["pairs"]) == (True, 276)

    wait_until(lambda: client.get("/collections/tales/retellings?threshold=0.0").status_code == 200)
    asked = get(client, "/collections/tales/retellings", threshold=0.0)
    assert (asked["threshold"], asked["chosen"]) == (0.0, False)
    assert (
        len(asked["groups"])
        == narrlit.pairs(narrlit.Index(tales_index).collection(), threshold=0.0).groups()["group"].nunique()
    )


def computed(client, path, **params):
    wait_until(lambda: client.get(path, params=params).status_code != 202)
    return get(client, path, **params)


def test_agreement_with_a_column_is_that_of_the_library(client, tales_index):
    collection = narrlit.Index(tales_index).collection()
    types = collection.frame["atu"].tolist()
    expected = neighbor_agreement(collection.similarities, "atu", types, 10)
    answer = computed(client, "/collections/tales/agreement", column="atu")
    assert [share["share"] for share in answer["shares"]] == [share.share for share in expected.shares]
    assert [value["value"] for value in answer["values"]] == [value.value for value in expected.values]
    first = answer["surprises"][0]
    ids = collection.frame["id"].tolist()
    assert [first["left"]["id"], first["right"]["id"]] == [ids[row] for row in expected.surprises[0][:2]]
    assert first["left"]["value"] != first["right"]["value"]
    assert client.get("/collections/tales/agreement", params={"column": "age"}).status_code == 400


def test_the_ranking_of_versions_is_that_of_the_library(client, tales_index):
    expected = narrlit.retrieval(narrlit.Index(tales_index).collection(), same="atu", control="country")
    answer = computed(client, "/collections/tales/ranking", column="atu", control="country")
    assert len(answer["figures"]) == len(expected.figures)
    for row in answer["figures"]:
        figure = expected.estimate(row["system"], row["metric"], row["subset"])
        assert (row["value"], row["n"]) == (figure.value, figure.n)
    assert (answer["queries"], answer["stories"], answer["control"]) == (24, 24, "country")
    permuted = {row["subset"] for row in answer["differences"]}
    assert "permuted within: country" in permuted


def test_what_nearest_stories_share_is_compared_for_all_columns(client):
    confounds = computed(client, "/collections/tales/confounds")["confounds"]
    assert {each["name"] for each in confounds} == {"length", "country", "atu"}
    assert confounds[0]["name"] == "atu"
    assert [each["is_warning"] for each in confounds] == [False, False, False]


def test_exact_words_are_found_in_their_places(client):
    answer = post(client, "/collections/tales/concordance", phrase="slipper of glass")
    [line] = answer["lines"]
    assert (answer["total"], answer["stories"], line["id"]) == (1, 1, "cinderella")
    text = get(client, "/collections/tales/stories/cinderella")["text"]
    assert text[line["start"] : line["end"]] == line["match"]
    filtered = post(client, "/collections/tales/concordance", phrase="the", filters={"country": ["France"]}, limit=2)
    assert len(filtered["lines"]) == 2 < filtered["total"]
    assert {line["metadata"]["country"] for line in filtered["lines"]} == {"France"}
    refusal = post(client, "/collections/tales/concordance", status=400, phrase="...")
    assert refusal["error"]["code"] == "empty_query"


def test_a_column_that_tells_equal_titles_apart_is_proposed_as_label(client):
    frame = pd.DataFrame(
        {
            "title": ["Cinderella", "Cinderella", "The Fox"],
            "text": ["A girl loses a shoe.", "A girl loses a slipper.", "A fox wants grapes."],
            "country": ["Germany", "Germany", "Greece"],
            "translator": ["Hunt", "Taylor", "Jacobs"],
        }
    )
    narrlit.Index.create(client.data / "collections" / "versions", frame, narrlit.load("minilm"))
    assert get(client, "/collections/versions")["label"] == "translator"
    assert get(client, "/collections/tales")["label"] is None
    client.delete("/collections/versions")


def test_search_finds_what_the_index_finds_with_the_passage_in_place(client, tales_index):
    query = "A girl is helped to a ball, and a prince finds her by her shoe."
    answer = post(client, "/collections/tales/search", query=query, k=5, fold_copies=False)
    expected = narrlit.Index(tales_index).search(query, 5).table()

    assert [hit["id"] for hit in answer["hits"]] == expected["id"].tolist()
    assert np.allclose([hit["similarity"] for hit in answer["hits"]], expected["similarity"], atol=1e-5)
    assert answer["measure"] == "passages"

    best = answer["hits"][0]
    around = (best["before"].strip(" …"), best["passage"]["text"], best["after"].strip(" …"))
    assert (
        " ".join(part.strip() for part in around if part)
        in get(client, f"/collections/tales/stories/{best['id']}")["text"]
    )
    for hit, snippet in zip(answer["hits"], expected["snippet"], strict=True):
        passage = hit["passage"]
        text = get(client, f"/collections/tales/stories/{hit['id']}")["text"]
        assert passage["text"] == snippet
        assert text[passage["start"] : passage["end"]].split() == snippet.split()


def test_search_filters_by_columns_and_measures(client):
    found = post(client, "/collections/tales/search", query="a shoe", filters={"atu": ["510A"]}, measure="lexical")
    assert len(found["hits"]) == 3
    assert found["measure"] == "lexical"
    small = "/collections/small ones/search"
    assert [hit["id"] for hit in post(client, small, query="a pearl", filters={"year": [1900]})["hits"]] == ["diver"]
    assert [hit["id"] for hit in post(client, small, query="x", filters={"year": [None]})["hits"]] == ["bank"]
    odd = post(client, small, query="x", filters={"author's name": ["=cmd()", None]})
    assert {hit["id"] for hit in odd["hits"]} == {"bank", "diver"}
    assert post(client, small, query="x", filters={"year": []})["hits"] == []


def test_near_copies_are_folded_into_the_better_hit(client):
    small = "/collections/small ones/search"
    folded = post(client, small, query="the water of life", k=2, measure="cosine")
    assert len(folded["hits"]) == 2
    [first] = [hit for hit in folded["hits"] if hit["id"].startswith("king")]
    assert len(first["copies"]) == 1
    unfolded = post(client, small, query="the water of life", k=2, measure="cosine", fold_copies=False)
    assert {hit["id"] for hit in unfolded["hits"]} == {"king", "king/copy"}
    like = post(client, small, like="king", measure="cosine")
    assert like["hits"][0]["id"] == "king/copy"


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({}, ""),
        ({"query": "x", "like": "y"}, ""),
        ({"query": "  "}, None),
        ({"query": "x", "k": 0}, "k"),
        ({"query": "x", "measure": "euclid"}, "measure"),
        ({"query": "x", "filters": {"a' OR 1=1 --": ["y"]}}, "filters"),
    ],
)
def test_invalid_searches_are_refused(client, body, parameter):
    error = post(client, "/collections/tales/search", status=400, **body)["error"]
    assert (error["parameter"] or "") == (parameter or "")


@pytest.mark.parametrize("side", [{}, {"id": "cinderella", "text": "A girl is poor."}])
def test_a_side_of_an_explanation_is_either_a_story_or_a_text(client, side):
    other = {"id": "cinderella"}
    error = post(client, "/collections/tales/explain", status=400, left=side, right=other)["error"]
    assert error["parameter"] == "left"
    assert "give either the id of a story, or a text" in error["message"]


def test_a_value_is_never_sql(client):
    found = post(client, "/collections/tales/search", query="x", filters={"atu": ["' OR '1'='1"]})
    assert found["hits"] == []


def test_what_does_not_exist_is_not_found(client):
    for path in ("/collections/none", "/collections/none/stories", "/collections/..%2F..%2Fetc/stories"):
        assert client.get(path).status_code == 404
    error = get(client, "/collections/tales/stories/none", status=404)["error"]
    assert (error["code"], error["values"]) == ("story_not_found", {"name": "none"})
    post(client, "/collections/tales/search", status=404, like="none")
    post(client, "/collections/tales/explain", status=404, left={"id": "none"}, right={"text": "x"})


def test_an_explanation_is_that_of_the_library(client, tales_index):
    first, second = get(client, "/collections/tales/stories", filter=["atu:510A"])["stories"][:2]
    answer = post(client, "/collections/tales/explain", left={"id": first["id"]}, right={"id": second["id"]})
    expected = narrlit.explain(first["id"], second["id"], stories=narrlit.Index(tales_index).collection())

    assert answer["similarity"] == pytest.approx(expected.similarity, abs=1e-5)
    assert sum(link["share"] for link in answer["links"]) == pytest.approx(expected.pair.score, abs=1e-5)
    assert [link["left"] + 1 for link in answer["links"]] == expected.table()["passage_a"].tolist()
    assert answer["left"]["title"] == first["title"]
    text = get(client, f"/collections/tales/stories/{first['id']}")["text"]
    for passage in answer["left"]["passages"]:
        assert text[passage["start"] : passage["end"]].split() == passage["text"].split()

    with_text = post(client, "/collections/tales/explain", left={"id": first["id"]}, right={"text": "A girl is poor."})
    assert with_text["right"]["passages"][0]["text"] == "A girl is poor."


def drawn(client, path, **params):
    def finished():
        answer = client.get(path, params=params)
        if answer.status_code == 202:
            assert answer.json() == {"status": "computing"}
            return None
        return answer

    return wait_until(finished)


def test_a_map_is_computed_in_the_background_and_kept(client, tales_index):
    answer = drawn(client, "/collections/tales/map").json()
    expected = narrlit.map_stories(narrlit.Index(tales_index).collection())

    assert [point["group"] for point in answer["points"]] == (expected.arranged.groups + 1).tolist()
    assert [group["label"] for group in answer["groups"]] == expected.arranged.names
    assert sorted(answer["tree"]["order"]) == sorted(point["id"] for point in answer["points"])
    assert len(answer["tree"]["merges"]) == 23
    assert np.array(answer["similarities"]).shape == (24, 24)
    assert client.get("/collections/tales/map").status_code == 200

    four = drawn(client, "/collections/tales/map", groups=4).json()
    assert len(four["groups"]) <= 4
    assert drawn(client, "/collections/tales/map", groups=24).status_code == 400


def test_points_of_a_tree_are_near_where_similarities_are_high(tales_index):
    collection = narrlit.Index(tales_index).collection()
    arranged = narrlit.map_stories(collection).arranged
    points = plane_points(arranged.arrangement)
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)[np.triu_indices(24, 1)]
    similarities = collection.similarities.matrix()[np.triu_indices(24, 1)]
    assert np.corrcoef(distances, similarities)[0, 1] < -0.5
    tree = arranged.arrangement.tree
    apart = np.maximum(tree.top - (tree.similarities + tree.similarities.T) / 2, 0)
    np.fill_diagonal(apart, 0)
    assert trustworthiness(apart, points, n_neighbors=3, metric="precomputed") > 0.85
    np.testing.assert_array_equal(points, plane_points(arranged.arrangement))
    with refused("number_of_groups", groups=1):
        in_groups(arranged, collection.similarities, 1)


def test_exports_are_tables_whose_cells_are_no_formulas(client):
    answer = client.post("/collections/small ones/export", json={"ids": ["bank", "king"], "format": "csv"})
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''small%20ones.csv"
    assert "'=cmd()" in answer.text
    assert pd.read_csv(io.StringIO(answer.text))["id"].tolist() == ["bank", "king"]
    book = client.post("/collections/tales/export", json={"ids": None, "format": "xlsx"})
    assert openpyxl.load_workbook(io.BytesIO(book.content)).active.max_row == 25
    post(client, "/collections/tales/export", status=404, ids=["none"], format="csv")


def test_only_own_collections_are_deleted(tmp_path, client, tales_index, served_encoder):
    assert client.delete("/collections/tales").status_code == 403
    assert tales_index.is_dir()
    shutil.copytree(client.data / "collections" / "small ones", client.data / "collections" / "gone")
    assert client.delete("/collections/gone").status_code == 204
    assert not (client.data / "collections" / "gone").exists()
    assert client.delete("/collections/gone").status_code == 404


def test_decisions_are_kept_if_the_collection_is_deleted(client):
    shutil.copytree(client.data / "collections" / "small ones", client.data / "collections" / "brief")
    decision = {"left": "king", "right": "bank", "decision": "different", "reader": "anna"}
    assert client.put("/collections/brief/pairs/decisions", json=decision).status_code == 204
    file = client.data / "collections" / "brief.project.jsonl"
    before = file.read_text(encoding="utf-8")
    assert '"different"' in before

    assert client.delete("/collections/brief").status_code == 204

    assert file.read_text(encoding="utf-8") == before
    assert "brief" not in [collection["name"] for collection in get(client, "/collections")]


def test_a_new_collection_of_a_deleted_name_has_pairs_of_its_own(client):
    path = client.data / "collections" / "remade"
    for animal in ("fox", "bear"):
        texts = [
            f"A {animal} stole a cheese from a crow.",
            f"A {animal} took the cheese of a crow.",
            "A bank was founded.",
        ]
        narrlit.Index.create(path, texts, narrlit.load("minilm"))
        [pair, *_] = get(client, "/collections/remade/pairs")["pairs"]
        assert animal in pair["left"]["text"]
        assert client.delete("/collections/remade").status_code == 204


def test_a_killed_deletion_is_finished_at_the_next_start(tmp_path, served_encoder):
    left = tmp_path / "collections" / ".deleted-abc" / "index"
    left.mkdir(parents=True)
    Shelf(tmp_path, (), served_encoder)
    assert not left.exists()


@pytest.mark.long
@pytest.mark.slow
def test_stories_that_another_process_adds_are_found_by_the_next_request(client, tmp_path):
    path = client.data / "collections" / "growing"
    narrlit.Index.create(path, ["A knight seeks a grail."], narrlit.load("minilm"))
    assert len(post(client, "/collections/growing/search", query="a whale")["hits"]) == 1
    pd.DataFrame({"id": ["new"], "text": ["A whale hunter loses his ship."]}).to_csv(tmp_path / "more.csv", index=False)

    command = [sys.executable, "-m", "narrlit", "index", tmp_path / "more.csv", "--out", path, "--model", "minilm"]
    subprocess.run(command, check=True, timeout=300)

    assert post(client, "/collections/growing/search", query="a whale")["hits"][0]["id"] == "new"
    assert get(client, "/collections/growing")["stories"] == 2


def test_an_index_takes_the_encoder_of_the_server_only_with_its_settings(tales_index, served_encoder):
    index = narrlit.Index(tales_index, encoder=served_encoder)
    assert index.encoder is served_encoder
    with refused("not_the_default", option="max_length"):
        narrlit.Index(tales_index, encoder=narrlit.load("minilm", max_length=64))


def test_values_keep_their_digits_and_one_form(client):
    small = client.data / "collections" / "numbers"
    stories = [
        {"id": "a", "text": "A king fell ill.", "post": 2**60 + 1, "year": 1890, "Ort": "Köln", "kept": True},
        {"id": "König", "text": "A diver drowned.", "post": 2**60 + 2, "Ort": unicodedata.normalize("NFD", "Köln")},
        {"id": "c", "text": "A bank lowered its rates.", "post": None, "year": None, "Ort": "Rom", "kept": False},
    ]
    narrlit.Index.create(small, stories, narrlit.load("minilm"))
    columns = {column["name"]: column for column in get(client, "/collections/numbers")["columns"]}
    assert repr(columns["year"]["values"]) == repr([{"value": 1890, "count": 1}])
    assert [value["value"] for value in columns["post"]["values"]] == [str(2**60 + 1), str(2**60 + 2)]
    assert columns["post"]["kind"] == "number"
    assert [(each["value"], each["count"]) for each in columns["Ort"]["values"]] == [("Köln", 2), ("Rom", 1)]

    path = "/collections/numbers/stories"
    decomposed = unicodedata.normalize("NFD", "König")
    assert get(client, f"{path}/{decomposed}")["metadata"]["post"] == str(2**60 + 2)
    for text, ids in (
        (f"post:{2**60 + 2}", ["König"]),
        ("year:1890", ["a"]),
        (unicodedata.normalize("NFD", "Ort:Köln"), ["a", "König"]),
        ("kept:true", ["a"]),
    ):
        assert [story["id"] for story in get(client, path, filter=text)["stories"]] == ids
        name, _, value = text.partition(":")
        hits = post(client, "/collections/numbers/search", query="a king", filters={name: [value]})["hits"]
        assert sorted(hit["id"] for hit in hits) == sorted(ids)
    assert get(client, path, ids=decomposed)["total"] == 1
    exported = client.post("/collections/numbers/export", json={"format": "csv"}).text
    assert f'"{2**60 + 1}"' in exported


def test_the_name_of_a_collection_has_one_form(tmp_path):
    shelf = Shelf(tmp_path, (), None)
    assert shelf.path_of(unicodedata.normalize("NFD", " Märchen\u00a07 ")).name == "Märchen 7"
    assert collection_name(unicodedata.normalize("NFD", "Märchen/1812")) == "Märchen 1812"
