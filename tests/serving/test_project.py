"""A reader's work over HTTP: lists, notes and decisions in one file, undone, and accepted values as columns."""

import json
import shutil
from io import BytesIO

import httpx
import pandas as pd
import pytest
from servers import running_server, wait_until

import narrlit
from narrlit.explore.catalog_decisions import CatalogDecisions
from narrlit.explore.pair_decisions import PairDecisions

pytestmark = pytest.mark.usefixtures("memoized_minilm")
TALES = "/collections/tales"
PROJECT = f"{TALES}/project"


@pytest.fixture
def folder(tmp_path, tales_index):
    """A folder with a copy of the tales, two of which lack their type."""
    return shutil.copytree(tales_index, tmp_path / "tales")


@pytest.fixture
def client(tmp_path, served_encoder, folder):
    with (
        running_server(tmp_path / "data", served_encoder, model="minilm", indexes=(folder,)) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


def change(client, status=204, **body):
    answer = client.post(f"{PROJECT}/changes", json=body)
    assert answer.status_code == status, answer.text
    return answer


def project(client):
    return client.get(PROJECT).json()


def lists(client):
    return {each["name"]: [story["id"] for story in each["stories"]] for each in project(client)["lists"]}


def test_lists_notes_and_settings_are_in_one_file_beside_the_index(client, folder):
    change(client, kind="list", name="shoes", add=["cinderella", "ye_xian", "rhodopis"])
    change(client, kind="list", name="shoes", remove=["ye_xian"])
    change(client, kind="note", id="ye_xian", start=3, end=9, passage="passage", text="golden shoes", tags=["shoe"])
    change(client, kind="setting", name="label", value="country")
    body = {"left": "cinderella", "right": "ye_xian", "decision": "same", "reader": "anna"}
    assert client.put(f"{TALES}/pairs/decisions", json=body).status_code == 204

    answer = project(client)
    assert lists(client) == {"shoes": ["cinderella", "rhodopis"]}
    assert answer["lists"][0]["stories"][0]["metadata"]["country"] == "France"
    [note] = answer["notes"]
    assert (note["story"]["title"], note["start"], note["text"], note["tags"]) == (
        "Ye Xian",
        3,
        "golden shoes",
        ["shoe"],
    )
    assert answer["settings"] == {"label": "country"}
    assert answer["changes"] == 5
    file = folder.with_name("tales.project.jsonl")
    kinds = [json.loads(line)["kind"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert kinds == ["list", "list", "note", "setting", "pair"]


def test_every_change_can_be_undone_and_redone(client):
    change(client, kind="list", name="", add=["cinderella"])
    change(client, kind="note", id="ye_xian", text="shoe")
    change(client, kind="note", id="ye_xian")  # without text and tags, it is removed
    assert project(client)["notes"] == []
    states = []
    for _ in range(4):
        answer = client.post(f"{PROJECT}/undo").json()
        states.append((len(answer["notes"]), len(answer["lists"]), answer["changes"], answer["can_redo"]))
    assert states == [(1, 1, 2, True), (0, 1, 1, True), (0, 0, 0, True), (0, 0, 0, True)]
    assert client.post(f"{PROJECT}/redo").json()["lists"][0]["stories"][0]["id"] == "cinderella"
    change(client, kind="list", name="other", add=["ye_xian"])
    assert client.post(f"{PROJECT}/redo").json()["changes"] == 2  # a new change forgets what was undone


def test_a_decision_of_an_earlier_session_is_listed_and_undone(client):
    body = {"left": "cinderella", "right": "ye_xian", "decision": "same", "reader": "anna"}
    assert client.put(f"{TALES}/pairs/decisions", json=body).status_code == 204
    [pair] = client.get(f"{TALES}/pairs/decided", params={"reader": "anna"}).json()
    assert (pair["left"]["id"], pair["right"]["title"], pair["decision"]) == ("cinderella", "Ye Xian", "same")
    assert client.get(f"{TALES}/pairs/decided", params={"reader": "ben"}).json() == []
    history = client.get(f"{PROJECT}/history").json()
    assert [(each["kind"], each["decision"]) for each in history["changes"]] == [("pair", "same")]
    assert {story["title"] for story in history["stories"]} == {"Cinderella", "Ye Xian"}
    client.post(f"{PROJECT}/undo")
    assert client.get(f"{TALES}/pairs/decided", params={"reader": "anna"}).json() == []
    assert client.get(f"{TALES}/pairs", params={"reader": "anna"}).json()["decided"] == 0


def test_a_project_is_saved_and_added_to_another_as_one_change(client, folder, tmp_path, served_encoder):
    change(client, kind="list", name="shoes", add=["cinderella", "ye_xian"])
    change(client, kind="list", name="wolves", add=["wolf_of_zhongshan"])
    client.post(f"{PROJECT}/undo")
    content = client.get(f"{PROJECT}/file").content
    assert content == folder.with_name("tales.project.jsonl").read_bytes()

    other = shutil.copytree(folder, tmp_path / "elsewhere" / "tales")
    with (
        running_server(tmp_path / "data2", served_encoder, model="minilm", indexes=(other,)) as server,
        httpx.Client(base_url=server.url, timeout=60) as second,
    ):
        change(second, kind="list", name="shoes", add=["rhodopis"])
        assert second.post(f"{PROJECT}/file", content=content).json() == {"changes": 1}
        assert lists(second) == {"shoes": ["rhodopis", "cinderella", "ye_xian"]}
        refusal = second.post(f"{PROJECT}/file", content=b'{"kind": "poem"}\n')
        assert (refusal.status_code, refusal.json()["error"]["code"]) == (400, "broken_decision")
        assert second.post(f"{PROJECT}/undo").json()["changes"] == 1
        assert lists(second) == {"shoes": ["rhodopis"]}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"kind": "list", "name": "x", "add": ["nobody"]}, 404, "story_not_found"),
        ({"kind": "note", "id": "nobody", "text": "x"}, 404, "story_not_found"),
        ({"kind": "setting", "name": "age", "value": "x"}, 400, "invalid_request"),
        ({"kind": "undo"}, 400, "invalid_request"),
    ],
)
def test_changes_that_make_no_sense_are_refused(client, body, status, code):
    assert change(client, status, **body).json()["error"]["code"] == code
    assert project(client)["changes"] == 0


def test_decisions_of_earlier_releases_are_taken_over(tmp_path, served_encoder, folder):
    old = tmp_path / "data" / "decisions" / "tales"
    PairDecisions(old / "pairs.jsonl").add("cinderella", "ye_xian", "same", "anna")
    CatalogDecisions(old / "catalog.jsonl").add("cinderella", "atu", None, accepted=False)
    with running_server(tmp_path / "data", served_encoder, model="minilm", indexes=(folder,)) as server:
        [pair] = httpx.get(f"{server.url}{TALES}/pairs/decided", params={"reader": "anna"}).json()
        [value] = httpx.get(f"{server.url}{TALES}/catalog/decided", params={"column": "atu"}).json()
    assert pair["decision"] == "same"
    assert (value["story"]["id"], value["value"]) == ("cinderella", None)


@pytest.fixture
def gaps(tmp_path, served_encoder):
    """A client of a server with six stories, of which two lack a type and one a year."""
    frame = pd.DataFrame(
        {
            "id": list("abcdef"),
            "text": [f"A {who} loses a {what}." for who in ("girl", "boy", "king") for what in ("shoe", "ring")],
            "type": ["510A", "560", None, "560", "510A", None],
            "year": [1697, 1812, 1857, None, 1850, 1900],
        }
    )
    data = tmp_path / "gaps"
    narrlit.Index.create(data / "collections" / "small", frame, narrlit.load("minilm"))
    with (
        running_server(data, served_encoder, model="minilm") as server,
        httpx.Client(base_url=f"{server.url}/collections/small", timeout=60) as client,
    ):
        yield client


def accept(client, id, column, value):
    body = {"id": id, "column": column, "value": value, "accepted": True}
    assert client.put("/catalog/decisions", json=body).status_code == 204


def ids_with(client, **filters):
    searched = client.post("/search", json={"query": "A shoe.", "filters": filters}).json()["hits"]
    chosen = [f"{name}:{value}" for name, values in filters.items() for value in values if value is not None]
    if chosen:
        listed = client.get("/stories", params={"filter": chosen}).json()["stories"]
        assert {hit["id"] for hit in searched} == {story["id"] for story in listed}
    return {hit["id"] for hit in searched}


def test_an_accepted_value_is_in_columns_filters_map_and_exports_at_once(gaps):
    def counts(column):
        columns = {each["name"]: each for each in httpx.get(str(gaps.base_url).rstrip("/")).json()["columns"]}
        return {each["value"]: each["count"] for each in columns[column]["values"]}

    drawn = wait_until(lambda: (answer := gaps.get("/map")).status_code == 200 and answer.json())
    assert "type" not in next(point for point in drawn["points"] if point["id"] == "c")["metadata"]
    assert (counts("type"), ids_with(gaps, type=["510A"])) == ({"510A": 2, "560": 2}, {"a", "e"})
    accept(gaps, "c", "type", "510A")
    accept(gaps, "d", "year", "1860")

    assert counts("type") == {"510A": 3, "560": 2}
    assert counts("year")[1860] == 1
    assert ids_with(gaps, type=["510A"]) == {"a", "c", "e"}
    assert ids_with(gaps, type=[None]) == {"f"}
    assert ids_with(gaps, type=["560"], year=[1860]) == {"d"}
    assert gaps.get("/stories/c").json()["metadata"]["type"] == "510A"
    redrawn = gaps.get("/map").json()
    assert next(point for point in redrawn["points"] if point["id"] == "c")["metadata"]["type"] == "510A"
    table = gaps.post("/export", json={"ids": ["c"], "format": "csv"}).text
    assert "510A" in table

    gaps.post("/project/undo")
    gaps.post("/project/undo")
    assert (counts("type"), ids_with(gaps, type=["510A"])) == ({"510A": 2, "560": 2}, {"a", "e"})


def test_exports_have_the_notes_and_tags_of_readers(gaps):
    without = gaps.post("/export", json={"ids": ["a"], "format": "ris"}).text
    for note in (
        {"id": "a", "text": "A slipper of fur?", "tags": ["shoes", "Perrault"]},
        {"id": "a", "start": 0, "end": 5, "passage": "A girl", "text": "nameless", "tags": ["shoes"]},
    ):
        assert gaps.post("/project/changes", json={"kind": "note", **note}).status_code == 204
    table = pd.read_csv(BytesIO(gaps.post("/export", json={"ids": ["a", "b"], "format": "csv"}).content)).fillna("")
    assert table["reader_tags"].tolist() == ["shoes; Perrault", ""]
    assert table["reader_notes"].tolist() == ["A slipper of fur?\n“A girl”: nameless", ""]
    answer = gaps.post("/export", json={"ids": ["a"], "format": "ris", "name": "Töchter"})
    new = [line for line in answer.text.splitlines() if line not in without.splitlines()]
    assert new == [
        "KW  - shoes",
        "KW  - Perrault",
        "N1  - type: 510A; reader_notes: A slipper of fur? “A girl”: nameless",
    ]
    assert "keywords = {shoes, Perrault}" in gaps.post("/export", json={"ids": ["a"], "format": "bibtex"}).text
    assert "T%C3%B6chter.ris" in answer.headers["content-disposition"]


def columns_of(client):
    columns = httpx.get(str(client.base_url).rstrip("/")).json()["columns"]
    return {column["name"]: {each["value"]: each["count"] for each in column["values"]} for column in columns}


def edit(client, ids, status=204, **values):
    answer = client.post("/project/changes", json={"kind": "edit", "ids": ids, "values": values})
    assert answer.status_code == status, answer.text
    return answer


def test_written_values_are_in_columns_filters_search_and_exports_at_once(gaps):
    edit(gaps, ["a"], type="", year="1698", title="The Shoe")
    edit(gaps, ["a", "f"], ending="happy")

    assert columns_of(gaps)["type"] == {"510A": 1, "560": 2}
    assert columns_of(gaps)["year"][1698] == 1
    assert 1697 not in columns_of(gaps)["year"]
    assert columns_of(gaps)["ending"] == {"happy": 2}
    assert ids_with(gaps, type=["510A"]) == {"e"}
    assert ids_with(gaps, type=[None]) == {"a", "c", "f"}
    assert ids_with(gaps, ending=["happy"]) == {"a", "f"}
    assert ids_with(gaps, ending=[None], type=["560"]) == {"b", "d"}
    assert ids_with(gaps, year=[1697]) == set()
    story = gaps.get("/stories/a").json()
    assert (story["title"], story["metadata"]) == ("The Shoe", {"year": 1698, "ending": "happy"})
    near = {each["id"]: each["title"] for each in gaps.get("/stories/e").json()["nearest"]}
    assert near["a"] == "The Shoe"
    table = pd.read_csv(BytesIO(gaps.post("/export", json={"ids": ["a"], "format": "csv"}).content))
    assert table.loc[0, ["title", "year", "ending"]].tolist() == ["The Shoe", 1698, "happy"]

    gaps.post("/project/undo")
    gaps.post("/project/undo")
    assert "ending" not in columns_of(gaps)
    assert columns_of(gaps)["type"] == {"510A": 2, "560": 2}


def test_a_later_edit_replaces_an_accepted_value_and_an_emptied_cell_takes_one(gaps):
    accept(gaps, "c", "type", "510A")
    edit(gaps, ["c"], type="560")
    assert ids_with(gaps, type=["560"]) == {"b", "c", "d"}
    edit(gaps, ["c", "b"], type="")
    assert ids_with(gaps, type=[None]) == {"b", "c", "f"}
    accept(gaps, "b", "type", "510A")
    assert ids_with(gaps, type=["510A"]) == {"a", "b", "e"}
    body = {"id": "d", "column": "type", "value": "510A", "accepted": True}
    assert gaps.put("/catalog/decisions", json=body).status_code == 409


@pytest.mark.parametrize(
    ("ids", "values", "status", "code"),
    [
        (["a"], {"year": "soon"}, 400, "not_a_number"),
        (["a"], {"id": "z"}, 400, "column_name"),
        (["a"], {"a.b": "z"}, 400, "column_name"),
        (["nobody"], {"type": "510A"}, 404, "story_not_found"),
        ([], {"type": "510A"}, 400, "invalid_request"),
    ],
)
def test_edits_that_make_no_sense_are_refused(gaps, ids, values, status, code):
    assert edit(gaps, ids, status, **values).json()["error"]["code"] == code
    assert gaps.get("/project").json()["changes"] == 0


def test_edits_of_a_collection_with_another_type_of_column_are_left_out(gaps):
    line = {"kind": "edit", "ids": ["a", "nobody"], "values": {"year": "about 1700", "type": "333"}}
    assert gaps.post("/project/file", content=json.dumps(line)).json() == {"changes": 1}
    assert columns_of(gaps)["year"][1697] == 1
    assert ids_with(gaps, type=["333"]) == {"a"}
