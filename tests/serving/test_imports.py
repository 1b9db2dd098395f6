"""Imports: files are understood before they are embedded, and nothing is lost or doubled."""

import contextlib
import io
import json
import os
import re
import signal
import zipfile
from pathlib import Path

import httpx
import openpyxl
import pytest
from documents import write_docx, write_pdf
from refusals import refused
from servers import running_server, serving_process, wait_until

import narrlit
from narrlit.data.tales import sample_tales, write_tales
from narrlit.data.writers import write_rows
from narrlit.serving.import_models import ChosenColumns, FileRecord, ImportRecord
from narrlit.serving.imports import files_of
from narrlit.serving.settings import Limits
from narrlit.serving.understanding import collected, understand

KING = "A king fell ill, and his three sons rode out to find the water of life. The youngest brought it home. " * 3
FOX = "A fox tricked a crow out of her cheese by praising her voice, and she dropped it. He ate it at once. " * 3


@pytest.fixture(scope="module")
def client(tmp_path_factory, served_encoder):
    limits = Limits(upload_bytes=2**20, unpacked_bytes=4 * 2**20, files=60, reading_seconds=60)
    data = tmp_path_factory.mktemp("data")
    with (
        running_server(data, served_encoder, model="minilm", limits=limits) as server,
        httpx.Client(base_url=server.url, timeout=120) as client,
    ):
        client.data = data
        yield client


def upload(client, files):
    answer = client.post("/imports", files=[("files", (name, content)) for name, content in files.items()])
    assert answer.status_code == 201, answer.text
    return finished(client, answer.json()["id"], "reading")


def finished(client, id, *states):
    """The import when it has left these states."""

    def state():
        answer = client.get(f"/imports/{id}").json()
        return answer if answer["status"] not in states else None

    return wait_until(state, pause=0.2)


def zipped(files, compression=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def workbook(rows):
    book, content = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(content)
    return content.getvalue()


@pytest.mark.long
def test_a_folder_of_every_format_is_understood_corrected_and_embedded(client, tmp_path):
    write_docx(tmp_path / "bear.docx", "The Bear", "A bear slept in a cave all winter and woke in spring.")
    write_pdf(tmp_path / "wolf.pdf", "A wolf ate a grandmother and waited in her bed.")
    files = {
        "tales/king.txt": KING.encode(),
        "tales/.DS_Store": b"x",
        "tales/bear.docx": (tmp_path / "bear.docx").read_bytes(),
        "tales/wolf.pdf": (tmp_path / "wolf.pdf").read_bytes(),
        "tales/table.csv": f"nr;story;what\n1;{FOX};cheese\n2;{KING};water\n".encode(),
        "tales/book.xlsx": workbook([["id", "text", "year"], ["x", FOX + "Later.", 1900]]),
        "tales/lines.jsonl": json.dumps({"text": KING + "Then he died.", "id": "x"}).encode(),
        "tales/more.zip": zipped({"inner/hen.txt": "A hen found an egg of gold and kept it for her children."}),
        "tales/titles.csv": b"file_name,title,country\nking.txt,The Water of Life,Germany\n",
        "tales/picture.png": b"\x89PNG",
    }
    ready = upload(client, files)
    found = {file["name"]: file for file in ready["files"]}

    assert (ready["status"], ready["name"]) == ("ready", "tales")
    assert ready["files_read"] == len(found)
    assert {name: file["kind"] for name, file in found.items()} == {
        "tales/king.txt": "text",
        "tales/bear.docx": "document",
        "tales/wolf.pdf": "document",
        "tales/table.csv": "table",
        "tales/book.xlsx": "table",
        "tales/lines.jsonl": "table",
        "tales/more/inner/hen.txt": "text",
        "tales/titles.csv": "metadata",
        "tales/picture.png": "unknown",
    }
    assert ready["stories"] == 8
    assert found["tales/king.txt"]["preview"][0]["title"] == "The Water of Life"
    assert found["tales/king.txt"]["languages"] == {"en": 1}
    assert found["tales/table.csv"]["columns"] == ["nr", "story", "what"]
    assert found["tales/table.csv"]["chosen"] == {"text": "story", "title": None, "id": None}
    assert found["tales/picture.png"]["warnings"][0]["code"] == "unknown_type"
    assert str(client.data) not in json.dumps(ready)

    changes = {"columns": {"tales/table.csv": {"text": "story", "title": "what", "id": "nr"}}}
    changes |= {"skip": ["tales/wolf.pdf"], "name": "My tales"}
    corrected = client.patch(f"/imports/{ready['id']}", json=changes).json()
    assert (corrected["stories"], corrected["name"]) == (7, "My tales")

    assert client.post(f"/imports/{ready['id']}/start", json={}).json()["status"] == "embedding"
    done = finished(client, ready["id"], "embedding")
    assert (done["status"], done["collection"], done["done"]["stories"]) == ("done", "My tales", 7), done

    stories = client.get("/collections/My tales/stories").json()["stories"]
    assert {story["id"] for story in stories} == {"king", "bear", "1", "2", "x", "x (2)", "more/inner/hen"}
    king = client.get("/collections/My tales/stories/king").json()
    assert (king["text"], king["metadata"]) == (KING.strip(), {"country": "Germany"})
    assert not list((client.data / "imports" / ready["id"]).glob("uploads"))
    assert client.delete(f"/imports/{ready['id']}").status_code == 204
    assert client.get(f"/imports/{ready['id']}").status_code == 404


@pytest.mark.long
def test_a_zip_bomb_is_refused_and_the_rest_is_read(client):
    bomb = zipped({"zeros.txt": b"0" * (5 * 2**20)})
    deep = zipped({"word/document.xml": b"<a>" * 200_000 + b"</a>" * 200_000, "[Content_Types].xml": b"<Types/>"})
    huge = zipped({"xl/workbook.xml": b"0" * (257 * 2**20)})
    files = {
        "bomb.zip": bomb,
        "deep.docx": deep,
        "huge.xlsx": huge,
        "fake.pdf": b"MZ not a pdf",
        "king.txt": KING.encode(),
    }
    ready = upload(client, files)
    warnings = {file["name"]: [each["message"] for each in file["warnings"]] for file in ready["files"]}

    assert ready["stories"] == 1
    assert "unpacked" in warnings["huge.xlsx"][0]
    assert warnings["deep.docx"]
    assert "no pdf file" in warnings["fake.pdf"][0]
    assert "unpacked" in warnings["bomb.zip"][0]


def test_an_archive_of_too_many_files_is_refused_and_the_rest_is_read(client):
    many = zipped({f"{number}.txt": KING for number in range(61)})
    ready = upload(client, {"many.zip": many, "king.txt": KING.encode()})
    messages = [warning["message"] for file in ready["files"] for warning in file["warnings"]]
    [problem] = [message for message in messages if "many.zip" in message]
    assert "61 files, but 60 at most are read" in problem
    assert ready["stories"] == 1


def slow_workbook():
    """A small file of 12 million cells, which take minutes to read."""
    cells = "<c><v>1</v></c>" * 1200
    sheet = f"<row>{cells}</row>" * 10_000
    empty, content = io.BytesIO(workbook([])), io.BytesIO()
    with zipfile.ZipFile(empty) as source, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            part = source.read(name).decode()
            if name == "xl/worksheets/sheet1.xml":
                part = part.replace("<sheetData></sheetData>", f"<sheetData>{sheet}</sheetData>")
            archive.writestr(name, part)
    return content.getvalue()


def large_table():
    """A table that needs several times its size to be read."""
    return b"id,text\n" + b"1,A story of many words that are all the same.\n" * 200_000


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make", "limits", "problem"),
    [
        ("slow.xlsx", slow_workbook, {"reading_seconds": 15}, "slow.xlsx takes more than 15 seconds to read"),
        ("large.csv", large_table, {"reading_bytes": 32 * 2**20}, "large.csv can't be read"),
    ],
)
def test_a_file_beyond_the_limits_of_reading_is_refused_by_name_and_requests_are_answered(
    tmp_path, served_encoder, name, make, limits, problem
):
    with (
        running_server(tmp_path, served_encoder, model="minilm", limits=Limits(**limits)) as server,
        httpx.Client(base_url=server.url, timeout=120) as client,
    ):
        files = {name: make(), "king.txt": KING.encode()}
        answer = client.post("/imports", files=[("files", item) for item in files.items()]).json()
        wait_until(lambda: workers("reading_worker"), seconds=60)
        assert client.get("/health", timeout=10).status_code == 200
        assert client.post("/v1/embeddings", json={"input": KING}, timeout=30).status_code == 200

        ready = finished(client, answer["id"], "reading")
        [refused] = [file for file in ready["files"] if file["name"] == name]
        assert problem in refused["warnings"][0]["message"]
        assert workers("reading_worker") == []


def workers(module):
    """The folders in /proc of the processes that this one has started with a module of the server."""
    workers = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # a process that ends meanwhile
            command = (process / "cmdline").read_text()
            parent = re.search(r"^PPid:\t(\d+)", (process / "status").read_text(), re.MULTILINE)
            if f"narrlit.serving.{module}" in command and int(parent[1]) == os.getpid():
                workers.append(process)
    return workers


def test_one_process_that_embeds_gets_ready_while_files_are_read(client):
    first = upload(client, {"king.txt": KING.encode()})
    second = upload(client, {"fox.txt": FOX.encode()})
    [ready] = workers("embedding_worker")
    assert "OMP_WAIT_POLICY=PASSIVE" in (ready / "environ").read_text().split("\0")  # threads wait without computing
    for each in (first, second):
        client.post(f"/imports/{each['id']}/start", json={"collection": "early"})
        assert finished(client, each["id"], "embedding")["status"] == "done"
    assert workers("embedding_worker") == []


def test_names_with_steps_upwards_stay_in_the_folder(client):
    bad = zipped({"../../../../tmp/narrlit-escaped.txt": KING, "/etc/narrlit-escaped.txt": FOX})
    ready = upload(client, {"../../narrlit-escaped.txt": KING.encode(), "bad.zip": bad})
    names = [file["name"] for file in ready["files"]]
    assert ready["stories"] == 3
    assert all(".." not in name and not name.startswith("/") for name in names)
    assert not list(client.data.parent.glob("narrlit-escaped*"))


def test_an_upload_above_its_limits_leaves_nothing_behind(client):
    before = sorted((client.data / "imports").iterdir())
    large = client.post("/imports", files=[("files", ("large.txt", b"x" * (2**20 + 1)))])
    many = client.post("/imports", files=[("files", (f"{n}.txt", b"x")) for n in range(61)])
    broken = client.post(
        "/imports", content=b"--x\r\nbroken", headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    none = client.post("/imports", json={"files": []})

    assert [answer.status_code for answer in (large, many, broken, none)] == [413, 413, 400, 400]
    assert sorted((client.data / "imports").iterdir()) == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "reason", "code"),
    [
        (
            {"picture.png": b"x", "fake.pdf": b"MZ"},
            "picture.png: files of this type are not read; 1 more",
            "nothing_read",
        ),
        ({"empty.zip": zipped({".DS_Store": "x"})}, "there is none in the archive", "empty_archive"),
    ],
)
def test_an_import_of_which_no_file_can_be_read_has_failed(client, files, reason, code):
    failed = upload(client, files)
    assert (failed["status"], failed["stories"]) == ("failed", 0)
    assert failed["message"].startswith(f"no file could be read ({reason}): upload other files, which may be .txt, ")
    assert (failed["problem"]["message"], failed["problem"]["code"]) == (failed["message"], code)

    path = f"/imports/{failed['id']}"
    renamed = client.patch(path, json={"name": "Tales"}).json()
    assert (renamed["status"], renamed["name"], renamed["message"]) == ("failed", "Tales", failed["message"])
    assert client.post(f"{path}/start", json={}).status_code == 400


def test_a_source_of_which_no_file_can_be_read_makes_no_collection(tmp_path, served_encoder):
    (tmp_path / "tales").mkdir()
    (tmp_path / "tales" / "fake.pdf").write_bytes(b"MZ")
    source = tmp_path / "tales"
    with (
        running_server(tmp_path / "data", served_encoder, model="minilm", source=source) as server,
        httpx.Client(base_url=server.url, timeout=120) as client,
    ):
        [begun] = client.get("/imports").json()
        failed = finished(client, begun["id"], "reading")
        assert failed["status"] == "failed"
        assert failed["message"].startswith("no file could be read (fake.pdf is no pdf file")
        assert client.get("/collections").json() == []


def test_what_an_import_is_not_ready_for_is_refused(client):
    ready = upload(client, {"table.csv": b"a,b\n1,2\n"})
    assert (ready["status"], ready["stories"]) == ("ready", 0)
    assert "choose the columns" in ready["message"]
    assert ready["files"][0]["warnings"][0]["code"] == "no_text_column"
    path = f"/imports/{ready['id']}"
    assert client.post(f"{path}/start", json={}).status_code == 400
    assert client.post(f"{path}/pause").status_code == 409
    assert client.post(f"{path}/resume").status_code == 409
    corrected = client.patch(path, json={"columns": {"text": "b"}}).json()
    assert (corrected["stories"], corrected["message"]) == (1, "1 story with 1 word is ready")
    assert client.post(f"{path}/start", json={"collection": "../out"}).status_code == 400
    assert client.get("/imports").json()[0]["id"] == ready["id"]


@pytest.mark.long
@pytest.mark.slow
def test_a_paused_import_goes_on_where_it_stopped(client):
    rows = [{"id": f"story {n}", "text": f"{n} kings sought {n} crowns. " * 20} for n in range(30)]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    ready = upload(client, {"many.jsonl": content})
    path = f"/imports/{ready['id']}"
    client.post(f"{path}/start", json={"collection": "many"})
    wait_until(lambda: client.get(path).json()["done"]["stories"] > 0)
    paused = client.post(f"{path}/pause").json()
    assert paused["status"] == "paused"
    assert 0 < paused["done"]["stories"] <= 30
    assert client.get("/collections/many").json()["import"] == ready["id"]

    assert client.post(f"{path}/resume").json()["status"] == "embedding"
    done = finished(client, ready["id"], "embedding")
    assert (done["status"], done["done"]["stories"]) == ("done", 30)
    assert client.get("/collections/many").json()["stories"] == 30


@pytest.mark.slow
@pytest.mark.long
def test_an_import_survives_the_end_of_the_server_at_any_moment(tmp_path):
    write_tales(tmp_path / "tales")
    data = tmp_path / "data"

    def state_of(url):
        [state] = httpx.get(f"{url}/imports", timeout=60).json()
        return state

    def killed_when(happened):
        with serving_process(data, tmp_path / "tales") as (process, url):
            wait_until(lambda: happened(state_of(url)))
            process.send_signal(signal.SIGKILL)
            process.wait(30)

    killed_when(lambda state: state["status"] == "reading")
    killed_when(lambda state: state["done"]["stories"] > 0)

    with serving_process(data, tmp_path / "tales") as (_, url):
        wait_until(lambda: state_of(url)["status"] == "done")
        stories = httpx.get(f"{url}/collections/tales/stories", timeout=60).json()["stories"]
        types = httpx.get(f"{url}/collections/tales", timeout=60).json()["columns"]
    assert sorted(story["id"] for story in stories) == sorted(
        tale["file_name"].removesuffix(".txt") for tale in sample_tales()
    )
    assert {column["name"] for column in types} >= {"atu", "country"}
    index = narrlit.Index(data / "collections" / "tales")
    assert len(index) == len(set(index.collection().frame["id"])) == 24


def test_a_source_without_files_to_import_is_refused(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"x")
    with refused("no_file_to_import"):
        files_of(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "king.txt").write_text(KING)
    assert files_of(tmp_path) == [tmp_path / "inner" / "king.txt"]


def record_of(tmp_path, *rows, name="table.csv", kind="table", **fields):
    folder = tmp_path / "import"
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"line": number, "value": row}) for number, row in enumerate(rows, start=2)]
    (folder / "rows" / "00001.jsonl").write_text("\n".join(lines))
    file = FileRecord(number=1, name=name, kind=kind, is_read=True, **fields)
    return folder, ImportRecord(id="1", name="x", files=[file])


def test_odd_rows_are_pointed_out(tmp_path):
    rows = [{"text": KING}, {"text": KING}, {"text": ""}, {"text": "A fox."}]
    folder, record = record_of(tmp_path, *rows)
    [file] = understand(folder, record).files
    assert file.stories == 3
    assert [(warning.code, warning.values["n"]) for warning in file.warnings] == [
        ("left_out_rows", 1),
        ("short_stories", 1),
        ("same_text", 1),
    ]
    assert "1 row left out" in file.warnings[0].message


def test_a_file_with_titles_inside_is_pointed_out(tmp_path):
    text = f"The King\n\n{KING}\n\nThe Fox and the Crow\n\n{FOX}"
    folder, record = record_of(tmp_path, {"text": text}, name="two.txt", kind="text")
    [file] = understand(folder, record).files
    assert [(warning.code, warning.values) for warning in file.warnings] == [
        ("several_stories", {"titles": "The King; The Fox and the Crow"})
    ]


def test_columns_with_names_of_an_index_are_renamed(tmp_path):
    folder, record = record_of(tmp_path, {"text": KING, "rank": 1, "a.b": 2, "_x": 3})
    [story] = collected(folder, record)
    assert dict(story.metadata) == {"rank_": 1, "a b": 2, "x": 3}


def recorded(folder, files):
    """Records of files that were read, by the rows of each."""
    records = []
    for number, (name, rows) in enumerate(files.items(), start=1):
        kind = "text" if name.endswith(".txt") else "table"
        write_rows(
            folder / "rows" / f"{number:05d}.jsonl", [{"line": n, "value": row} for n, row in enumerate(rows, 1)]
        )
        records.append(FileRecord(number=number, name=name, kind=kind, is_read=True))
    return ImportRecord(id="x", name="x", files=records)


def test_a_table_describes_files_in_folders(tmp_path):
    (tmp_path / "rows").mkdir()
    files = {
        "tales/grimm/fox.txt": [{"text": FOX}],
        "tales/aesop/fox.txt": [{"text": KING}],
        "tales/about.csv": [
            {"File": "grimm/fox", "Title": "Fuchs"},
            {"File": "fox.txt"},
            {"File": "bear", "Title": "B"},
        ],
    }
    import_record = recorded(tmp_path, files)

    assert [(story.id, story.title) for story in collected(tmp_path, import_record)] == [
        ("grimm/fox", "Fuchs"),
        ("aesop/fox", ""),
    ]
    table = understand(tmp_path, import_record).files[-1]
    assert table.kind == "metadata"
    assert [warning.code for warning in table.warnings] == ["files_found", "files_ambiguous"]
    assert table.warnings[0].values["missing"] == "bear"

    files["tales/about.csv"] = [{"Title": "a", "title": "b", "file": "grimm/fox.txt"}]
    import_record = recorded(tmp_path, files)
    table = understand(tmp_path, import_record).files[-1]
    assert (table.kind, [warning.code for warning in table.warnings]) == ("metadata", ["several_columns"])

    import_record.files[-1].wanted = ChosenColumns(title="title")
    table = understand(tmp_path, import_record).files[-1]
    assert (table.kind, table.chosen.title, table.warnings) == ("metadata", "title", [])
    assert next(collected(tmp_path, import_record)).title == "b"
