"""Files as people have them: folders, documents, encodings, workbooks, standard input, columns and ids."""

import io
import re
import sys
import unicodedata
import zipfile

import pytest
from documents import write_docx, write_epub, write_pdf
from refusals import refused

from narrlit.data.readers import read_any, read_stories, read_triples
from narrlit.data.row_file import ReadingNote
from narrlit.data.rows import Layout, file_digest, read_rows

FRENCH = "Le roi tomba malade à l’automne; la forêt était épaisse et ses frères s’égarèrent."
CZECH = "Král onemocněl a poslal své tři syny do světa, aby našli živou vodu. Byla to dlouhá cesta přes řeku."
TURKISH = "Kral hastalandı ve üç oğlunu yaşam suyunu bulmaya gönderdi, şimdi çok uzaktaydı. Uzun bir yolculuktu bu."
RUSSIAN = "Царь заболел и послал трёх сыновей за живой водой. Младший встретил лису."
CHINESE = "从前有一个国王，他有三个儿子。国王病了，派他们去找生命之水。"


def texts(stories):
    return [story.text for story in stories]


@pytest.fixture
def tales(tmp_path):
    folder = tmp_path / "tales"
    folder.mkdir()
    return folder


@pytest.fixture
def piped(monkeypatch):
    def write(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return "-"

    return write


def test_a_text_file_is_one_story_unless_it_is_divided(make):
    path = make("w.txt", "A king fell\nill at night.\n\nA fox went\nout alone.\n")
    whole = read_stories(path)
    assert texts(whole) == ["A king fell\nill at night.\n\nA fox went\nout alone."]
    assert whole.story_ids == ["w"]
    assert whole.report.summary() == "w.txt: 1 row; 4 lines are one story, not one per line"
    assert read_stories(make("o.txt", "A king.\n")).report.notes == ()

    lines = read_stories(path, layout=Layout(split="lines"))
    assert texts(lines)[1:3] == ["ill at night.", "A fox went"]
    assert lines.lines == [1, 2, 4, 5]
    assert lines.story_ids == ["1", "2", "3", "4"]

    blocks = read_stories(path, layout=Layout(split="blank-lines"))
    assert texts(blocks) == ["A king fell\nill at night.", "A fox went\nout alone."]
    assert blocks.report.notes == ()
    with refused("split_of_other_file", path="s.csv"):
        read_stories(make("s.csv", "text\na\n"), layout=Layout(split="lines"))


def test_a_folder_has_a_story_a_file_and_columns_of_a_table(tales):
    with refused("no_stories_in_folder", path="tales", found="no file"):
        read_stories(tales)

    (tales / "t.csv").write_bytes(
        "file_name;title;atu;text\nb.txt;König;510;ignored\nc;Fox;;\nz.txt;;1;\n".encode("cp1252")
    )

    with refused("no_stories_in_folder", found="t.csv"):
        read_stories(tales)

    (tales / "b.txt").write_text("A king.\n\nHis end.\n")
    (tales / "c.txt").write_bytes("A café.".encode("cp1252"))
    (tales / "a.md").write_text("# The ship #\n\nIt sailed.\n\n## Later\nIt sank.")
    (tales / ".hidden.txt").write_text("x")
    (tales / "~$b.docx").write_text("x")
    (tales / "p.jpg").write_bytes(b"\xff\xd8")
    stories = read_stories(tales)

    assert texts(stories) == ["It sailed.\n\nLater\n\nIt sank.", "A king.\n\nHis end.", "A café."]
    assert stories.story_ids == ["a", "b", "c"]
    assert stories.titles == ["The ship", "König", "Fox"]
    assert stories.metadata[1] == {"file_name": "b.txt", "atu": "510"}
    assert stories.metadata[2] == {"file_name": "c.txt"}
    assert stories.report.summary() == (
        "tales: 3 rows; t.csv read as cp1252; t.csv: 2 of 3 files found; missing: z.txt; 1 file read as cp1252; "
        "1 file in no table, first a.md; left 1 file unread, first p.jpg"
    )


def test_a_file_of_a_folder_is_named_where_it_is_empty_or_repeats_an_id(tales):
    (tales / "a.txt").write_text("A king.")
    (tales / "b.txt").write_text(" \n")
    with refused("empty_file", path="b.txt"):
        read_stories(tales, strict=True)
    [note] = read_stories(tales).report.notes
    assert (note.code, note.values["n"]) == ("left_out_files", 1)
    assert "b.txt is empty" in str(note)

    digest = file_digest(tales)
    (tales / "b.txt").write_text("A fox.")
    assert file_digest(tales) != digest

    (tales / "a.md").write_text("A ship.")
    with refused("repeated_id", path="tales", first=1, second=2, id="a"):
        _ = read_stories(tales).story_ids


def test_documents_are_stories_with_their_heading_as_title(tales):
    pytest.importorskip("mammoth")
    write_docx(tales / "a.docx", "The fox", "A fox went out.", "It came home.")
    write_epub(tales / "b.epub", "The king", "A king fell ill.", "He died.")
    write_pdf(tales / "c.pdf", "A ship sailed", "over the sea.")
    stories = read_stories(tales)
    fox, king, ship = texts(stories)

    assert fox == "A fox went out.\n\nIt came home."
    assert king == "A king fell ill.\n\nHe died."
    assert ship.split() == ["A", "ship", "sailed", "over", "the", "sea."]
    assert stories.story_ids == ["a", "b", "c"]
    assert stories.titles == ["The fox", "The king", None]

    write_pdf(tales / "scan.pdf")
    with refused("no_text_inside", path="scan.pdf"):
        read_stories(tales / "scan.pdf")

    for name in ("x.docx", "x.epub", "x.pdf"):
        (tales / name).write_bytes(b"%PDF-1.4 broken")
        with refused("broken_document", path=name):
            read_stories(tales / name)


@pytest.mark.parametrize(
    ("text", "encoding", "named"),
    [
        ("Straße", "cp1252", "cp1252"),
        (FRENCH, "cp1252", "cp1252"),
        (FRENCH, "mac_roman", "mac_roman"),
        (FRENCH.replace("’", "'"), "cp850", "cp850"),
        ("Straße", "mac_roman", "mac_roman"),
        (CZECH, "cp1250", "cp1250"),
        (TURKISH, "cp1254", "cp1254"),
        (RUSSIAN, "cp1251", "cp1251"),
        (CHINESE, "gb18030", "gb18030"),
        (FRENCH, "utf-16", "utf_16"),
        (FRENCH, "utf-16-le", "utf_16_le"),
    ],
)
def test_other_encodings_are_found_and_named(make, text, encoding, named):
    stories = read_stories(make("s.csv", f'id,text\n1,"{text}"\n'.encode(encoding)))
    assert texts(stories) == [text]
    assert stories.report.summary() == f"s.csv: 1 row; read as {named}"


@pytest.mark.parametrize("declared", ['<dimension ref="A1:A2"/>', '<dimension ref="A1"/>', ""])
def test_no_cell_of_a_workbook_is_lost_where_its_declared_size_is_wrong(tmp_path, declared):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["text", "land"], ["A king.", "FR"], ["A fox.", "PT"], [], ["A ship.", "DE"]):
        book.active.append(row)
    book.save(tmp_path / "right.xlsx")
    with zipfile.ZipFile(tmp_path / "right.xlsx") as right, zipfile.ZipFile(tmp_path / "wrong.xlsx", "w") as wrong:
        for name in right.namelist():
            content = right.read(name)
            if name == "xl/worksheets/sheet1.xml":
                assert b'<dimension ref="A1:B5"' in content
                content = re.sub(rb"<dimension [^>]*>", declared.encode(), content)
            wrong.writestr(name, content)

    stories = read_stories(tmp_path / "wrong.xlsx")

    assert texts(stories) == ["A king.", "A fox.", "A ship."]
    assert stories.lines == [2, 3, 5]
    assert [row["land"] for row in stories.metadata] == ["FR", "PT", "DE"]


def test_workbooks_and_parquet_keep_types_and_all_columns(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    arrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    book = openpyxl.Workbook()
    for row in (["Title", "Plot", "Year", None], ["A", "A king.", 1812, None], [], ["B", "A fox.", None, None]):
        book.active.append(row)
    book.create_sheet("notes").append(["x"])
    book.save(tmp_path / "s.xlsx")
    stories = read_stories(tmp_path / "s.xlsx")

    assert texts(stories) == ["A king.", "A fox."]
    assert stories.titles == ["A", "B"]
    assert stories.lines == [2, 4]
    assert [row.get("Year") for row in stories.metadata] == [1812, None]
    assert stories.report.notes == (ReadingNote.of("read_sheet", sheet="Sheet", sheets="notes"),)

    write_table(arrow.table({"text": ["A king."], "tags": [["x", "y"]], "id": [7]}), tmp_path / "s.parquet")
    stories = read_stories(tmp_path / "s.parquet")
    assert stories.story_ids == ["7"]
    assert stories.metadata == [{"tags": ["x", "y"]}]

    labels = {"anchor_text": ["x"], "text_a": ["p"], "text_b": ["q"], "text_a_is_closer": [True]}
    write_table(arrow.table(labels), tmp_path / "t.parquet")
    assert read_triples(tmp_path / "t.parquet").labels.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"text": "one"}\n{"text": "two"}\n', ["one", "two"]),
        ('"one"\n"two"\n', ["one", "two"]),
        ('[{"text": "one"},\n{"text": "two"}]', ["one", "two"]),
        ("id;Plot\n1;one\n2;two\n", ["one", "two"]),
        ("One day, a king\nfell ill.\n", ["One day, a king\nfell ill."]),
        ("[One day] a king\nfell ill.\n", ["[One day] a king\nfell ill."]),
        ("1984\nwas a year.\n", ["1984\nwas a year."]),
    ],
)
def test_standard_input_is_what_its_first_line_says(piped, text, expected):
    stories = read_stories(piped(text))
    assert texts(stories) == texts(read_any("/dev/stdin")) == expected
    assert stories.report.summary().startswith("standard input: ")


def test_standard_input_is_divided_where_asked_and_refused_where_empty(piped):
    assert texts(read_stories(piped('"a"\nb\n'), layout=Layout(split="lines"))) == ['"a"', "b"]
    with refused("empty_file"):
        read_stories(piped("\n"))


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("title,Plot", "Plot"),
        ("summary,text", "text"),
        ("description,story,plot", "story"),
        ("Synopsis,note", "Synopsis"),
    ],
)
def test_columns_are_found_by_their_usual_names(make, header, chosen):
    stories = read_stories(make("s.csv", f"{header},n\n{header},1\n"))
    assert texts(stories) == [chosen]
    assert stories.columns["text"] == chosen


def test_columns_of_text_id_and_title_may_be_named(make):
    path = make("s.csv", "plot,summary,nr,name\nA king.,k,7,King\nA fox.,f,,\n")
    for read in (read_stories, read_any):
        with refused("several_text_columns", path="s.csv", column="plot"):
            read(path)

    stories = read_stories(path, layout=Layout("plot", "nr", "name"))
    assert texts(stories) == ["A king.", "A fox."]
    assert stories.story_ids == ["7", "2"]
    assert stories.titles == ["King", None]
    assert stories.metadata == [{"summary": "k"}, {"summary": "f"}]
    with refused("missing_column", path="s.csv", column="no", found="plot, summary, nr, name"):
        read_stories(path, layout=Layout("plot", id_column="no"))


def test_ids_are_unique_or_refused_with_both_rows(make):
    stories = read_stories(make("s.csv", 'id,text\nx,a\n,"b\nb"\nx,c\n'))
    with refused("repeated_id", path="s.csv", first=2, second=5, id="x"):
        _ = stories.story_ids
    assert read_stories(make("s.jsonl", '"a"\n"b"\n')).story_ids == ["1", "2"]


def test_a_table_of_triples_takes_no_notice_of_columns_of_stories(make):
    path = make("t.csv", "anchor_text,text_a,text_b,plot,summary\nx,p,q,1,2\n")
    assert texts(read_any(path)) == ["x", "p", "q"]
    assert len(read_rows(path).rows) == 1


def test_a_table_finds_files_whose_names_are_decomposed(tales):
    decomposed = unicodedata.normalize("NFD", "Märchen.txt")
    (tales / decomposed).write_text("Ein Fährmann fand eine Perle.", encoding="utf-8")
    (tales / "Mühle.txt").write_text("Ein Müller verlor sein Gold.", encoding="utf-8")
    table = unicodedata.normalize("NFD", "file_name,größe\nMühle,2\n") + "Märchen.txt,1\n"
    (tales / "table.csv").write_text(table, encoding="utf-8")
    stories = read_stories(tales)
    assert stories.report.notes == ()
    assert stories.metadata == [{"file_name": "Märchen.txt", "größe": "1"}, {"file_name": "Mühle.txt", "größe": "2"}]
    assert [story.id for story in stories] == [unicodedata.normalize("NFD", "Märchen"), "Mühle"]
    assert stories.story_ids == ["Märchen", "Mühle"]


def test_tables_are_read_as_spreadsheet_programs_write_them(make):
    for name, content, expected in (
        ("declared.csv", 'sep=|\r\nid|text\r\n1|"A king; a queen | heirs."\r\n2|A fox.\r\n', [3, 4]),
        ("counted.csv", ",text\n0,A king; a queen | heirs.\n1,A fox.\n", [2, 3]),
        ("trailing.csv", "text,year,,\nA king; a queen | heirs.,1812,,\nA fox.,,,,,\n", [2, 3]),
        ("blank.csv", "text;year\n;\nA king, a queen | heirs.;1\n ; \nA fox.;2\n;\n", [3, 5]),
        ("titled.csv", "Tales of the north,,\n\nid,text,year\n1,A king; a queen | heirs.,1\n2,A fox.,2\n", [4, 5]),
        ("old.csv", "id,text\r1,A king; a queen | heirs.\r2,A fox.\r", [2, 3]),
    ):
        stories = read_stories(make(name, content), strict=True)
        assert [len(text) for text in texts(stories)] == [24, 6], name
        assert stories.lines == expected
        assert all("" not in cells for cells in stories.metadata)


def test_cells_of_columns_without_a_name_are_counted(make):
    stories = read_stories(make("s.csv", ",text,\n0,A king.,\n1,A fox.,seen\n"))
    assert stories.report.notes == (ReadingNote.of("left_out_nameless", n=3),)
    titled = read_stories(make("t.csv", "Tales\n\ntext,year\nA king.,1812\n"))
    assert titled.report.notes == (ReadingNote.of("left_out_above_header", n=1, line=3),)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ('1\t"The king" fell ill.\n2\tA "fox.\n', ['"The king" fell ill.', 'A "fox.']),
        ('1\t"The king\n2\tA fox."\n', ['"The king', 'A fox."']),
        ('1\t"The ""king"" fell\till."\n2\tA fox.\n', ['The "king" fell\till.', "A fox."]),
        ('1\t"The king"\n2\tA fox.\n', ["The king", "A fox."]),
        ('1\t"The king\nfell ill."\n2\tA fox.\n', ["The king\nfell ill.", "A fox."]),
    ],
)
def test_quotes_of_tab_separated_text_are_marks_or_text(make, rows, expected):
    assert texts(read_stories(make("s.tsv", f"id\ttext\n{rows}"), strict=True)) == expected


@pytest.mark.parametrize(
    "content",
    [
        '{\n  "id": 1,\n  "text": "A king."\n}\n\n{\n  "id": 2,\n  "text": "A fox."\n}\n',
        '[\n  {"id": 1, "text": "A king."},\n  {"id": 2, "text": "A fox."}\n]\n',
        '{"id": 1, "text": "A king."}\r{"id": 2, "text": "A fox."}\r',
    ],
)
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_json_values_may_take_several_lines(make, content, suffix):
    stories = read_stories(make(f"s.{suffix}", content))
    assert texts(stories) == ["A king.", "A fox."]
    assert stories.story_ids == ["1", "2"]
    with refused("broken_json", line=1):
        read_stories(make(f"b.{suffix}", content.replace("}", "", 1)))


def test_line_ends_of_old_macs_divide_texts(make):
    path = make("s.txt", "A king fell\rill.\r\rA fox.\r")
    assert texts(read_stories(path, layout=Layout(split="blank-lines"))) == ["A king fell\nill.", "A fox."]
    assert len(read_stories(path, layout=Layout(split="lines"))) == 3


@pytest.fixture
def workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")

    def write(change=None, **sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        if change is not None:
            change(book)
        book.save(tmp_path / "s.xlsx")
        return tmp_path / "s.xlsx"

    return write


TALES = [["id", "text", "land"], [1, "A king.", "FR"], [2, "A fox.", "PT"]]


def test_the_visible_sheet_with_texts_is_read(workbook):
    def hide(book):
        book["types"].sheet_state = "hidden"

    stories = read_stories(workbook(hide, types=[["id", "text"], [7, "type"]], about=[["Read me"]], tales=TALES))
    assert texts(stories) == ["A king.", "A fox."]
    assert stories.report.notes == (ReadingNote.of("read_sheet", sheet="tales", sheets="types, about"),)

    stories = read_stories(workbook(north=TALES, notes=[["x"]], south=TALES))
    assert len(stories) == 4
    assert [cells["sheet"] for cells in stories.metadata] == ["north", "north", "south", "south"]
    with refused("unusable_row", place="s.xlsx[south]:4"):
        read_stories(workbook(north=TALES, south=[*TALES, [3, None, "DE"]]), strict=True)


def test_titles_above_a_header_and_merged_cells_of_a_workbook(workbook):
    def merge(book):
        book["tales"].merge_cells("C4:C5")
        book["tales"].merge_cells("A1:C1")

    stories = read_stories(workbook(merge, tales=[["Tales of the north"], [], *TALES]))
    assert stories.lines == [4, 5]
    assert [cells["land"] for cells in stories.metadata] == ["FR", "FR"]
    assert {note.code for note in stories.report.notes} == {"filled_merged", "left_out_above_header"}


def test_formulas_without_saved_values_are_named(workbook):
    with refused("formulas_without_values", path="s.xlsx", column="text"):
        read_stories(workbook(tales=[["id", "text"], [1, '="A king"&"."']]))
    stories = read_stories(workbook(tales=[["text", "words"], ["A king.", "=LEN(A2)"]]))
    assert stories.report.notes == (ReadingNote.of("left_out_formulas", column="words"),)


def test_a_folder_is_read_in_depth_and_what_is_no_story_is_named(tales):
    for name, content in (
        ("north/king.txt", "A king."),
        ("north/.git/x.txt", "x"),
        ("south/east/fox.txt", "A fox."),
        ("ship.txt", "A ship."),
        ("budget.csv", "Costs 2024,,\nitem,price,sum\nship,1,2\n"),
        ("empty.csv", ""),
        ("broken.docx", "PK"),
    ):
        (tales / name).parent.mkdir(parents=True, exist_ok=True)
        (tales / name).write_text(content)
    stories = read_stories(tales)

    assert stories.story_ids == ["north/king", "ship", "south/east/fox"]
    assert {note.code for note in stories.report.notes} == {"unread_files", "left_out_files"}
    assert "2 files unread, first budget.csv" in stories.report.summary()
    assert "left out 1 file: " in stories.report.summary()
    assert "broken.docx" in stories.report.summary()
    with refused("broken_document", path="broken.docx"):
        read_stories(tales, layout=Layout(strict=True))
    digest = file_digest(tales)
    (tales / "north" / "king.txt").write_text("A queen.")
    assert file_digest(tales) != digest


@pytest.mark.parametrize(
    ("names", "encoding", "flag"),
    [
        (["Märchen/König.txt", "Über.txt"], "utf-8", 0x800),
        (["Märchen/König.txt", "Über.txt"], "utf-8", 0),
        (["Märchen/König.txt", "Über.txt", "plain.txt"], "cp437", 0),
        (["contes/Chêne.txt", "Été à la forêt.txt"], "cp437", 0),
        (["昔話/桃太郎.txt", "かぐや姫.txt", "浦島太郎2.txt"], "cp932", 0),
        (["童话/白雪公主.txt", "狐狸和葡萄.txt"], "gbk", 0),
        (["сказки/лиса и журавль.txt", "царь.txt"], "cp866", 0),
    ],
)
def test_names_in_archives_are_read_in_their_encoding(tmp_path, names, encoding, flag):
    path = tmp_path / "tales.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(names):
            part = zipfile.ZipInfo("x" * len(name.encode(encoding)))
            archive.writestr(part, f"Tale {number}.")
    content = path.read_bytes()
    for name in names:
        encoded = name.encode(encoding)
        content = content.replace(b"x" * len(encoded), encoded, 1)
    for name in names:  # in the directory at the end
        encoded = name.encode(encoding)
        content = content.replace(b"x" * len(encoded), encoded, 1)
    if flag:
        content = content.replace(b"PK\x03\x04\x14\0\0\0", b"PK\x03\x04\x14\0\0\x08")
        content = content.replace(b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\0\x08")
    path.write_bytes(content)

    stories = read_stories(path)

    assert stories.story_ids == sorted(name.removesuffix(".txt") for name in names)
    assert {cells["file_name"] for cells in stories.metadata} == set(names)


@pytest.fixture
def foxes(tales):
    for name in ("grimm/fox.txt", "aesop/fox.txt", "aesop/crow.txt"):
        (tales / name).parent.mkdir(exist_ok=True)
        (tales / name).write_text(f"A tale of {name}.")
    return tales


@pytest.mark.parametrize(
    ("table", "titles"),
    [
        ("file_name,title\ngrimm/fox.txt,G\naesop/fox.txt,A\ncrow.txt,C\n", ["C", "A", "G"]),
        ("File,Title\ngrimm/fox,G\naesop/fox,A\ncrow,C\n", ["C", "A", "G"]),
        (
            "nr,source,TITLE\n1,C:\\tales\\grimm\\fox.txt,G\n2,C:\\tales\\aesop\\fox.txt,A\n3,Crow.TXT,C\n",
            ["C", "A", "G"],
        ),
        ("ID,Title\ngrimm/fox,G\naesop/fox,A\naesop/crow,C\n", ["C", "A", "G"]),
        ("scan,title\ngrimm/fox.pdf,G\naesop/fox.DOC,A\ncrow.docx,C\n", ["C", "A", "G"]),
    ],
)
def test_a_table_describes_files_by_the_values_of_a_column(foxes, table, titles):
    (foxes / "about.csv").write_text(table)
    stories = read_stories(foxes)
    assert stories.titles == titles
    assert stories.story_ids == ["aesop/crow", "aesop/fox", "grimm/fox"]
    assert stories.report.notes == ()


def test_numbers_of_files_are_found_without_their_zeros(tales):
    for number in (1, 2, 10):
        (tales / f"{number:03}.txt").write_text(f"Tale {number}.")
    (tales / "about.csv").write_text("nr,title\n1,One\n2,Two\n10,Ten\n")
    assert read_stories(tales).titles == ["One", "Two", "Ten"]


def test_files_that_a_table_does_not_tell_apart_are_not_described(foxes):
    (foxes / "about.csv").write_text("file,year\nfox.txt,1\ncrow.txt,2\nbear.txt,3\ncrow.txt,4\n")
    stories = read_stories(foxes)
    assert [cells.get("year") for cells in stories.metadata] == ["2", None, None]
    assert [note.code for note in stories.report.notes] == [
        "files_found",
        "files_ambiguous",
        "files_twice",
        "files_undescribed",
    ]
    assert "about.csv: 2 of 4 files found; missing: bear.txt" in stories.report.summary()

    (foxes / "about.csv").unlink()
    (foxes / "aesop" / "about.csv").write_text("name,year\nfox.txt,1\ncrow.txt,2\n")  # of the files beside it
    assert [cells.get("year") for cells in read_stories(foxes).metadata] == ["2", "1", None]


def test_columns_of_which_each_could_be_meant_are_refused(foxes, make):
    (foxes / "about.csv").write_text("first,second,year\naesop/fox,grimm/fox,1\ngrimm/fox,aesop/crow,2\n")
    with refused("several_file_columns", path="about.csv", column="first"):
        read_stories(foxes)
    chosen = read_stories(foxes, layout=Layout(file_column="second"))
    assert [cells.get("year") for cells in chosen.metadata] == ["2", None, "1"]

    (foxes / "about.csv").write_text("file,title,Title\ncrow.txt,a,b\n")
    with refused("several_columns", path="about.csv", option="title_column", column="title"):
        read_stories(foxes)
    assert read_stories(foxes, layout=Layout(title_column="Title")).titles == ["b", None, None]
    with refused("missing_column", path="tales", option="file_column", column="name"):
        read_stories(foxes, layout=Layout(file_column="name"))
    with refused("several_columns", path="s.csv", option="id_column", column="id"):
        read_stories(make("s.csv", "id,ID,text\n1,2,A king.\n"))
    assert read_stories(make("s.csv", "id,ID,text\n1,2,A king.\n"), layout=Layout(id_column="ID")).story_ids == ["2"]
