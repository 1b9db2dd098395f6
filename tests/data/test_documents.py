"""Documents as plain text: every format, reading order, and what is left out."""

import zipfile

import pytest
from documents import write_pdf_columns, write_pdf_turned, write_pdf_vertical
from refusals import refused

from narrlit.data.readers import read_stories
from narrlit.data.rows import Layout

KING = "A king fell ill, and his three sons rode out to find the water of life."
FOX = "A fox saw ripe grapes on a vine and could not reach them, so he called them sour."
WRAPPED = """\
A king who had fallen ill sent his three sons into the wide world to look
for the water of life, which alone could help him. The two elder brothers
were proud, and a dwarf shut them up in a ravine, where they could neither
turn nor go on. The youngest was kind, and found the well in a castle."""
POEM = """\
The fox went out upon the hill,
He saw the grapes and had his fill
Of looking at them from below,
And so he turned about to go."""
HEADER = """\
The Project Gutenberg eBook of Tales of the North

Title: Tales of the North
Author: Nobody at All

*** START OF THE PROJECT GUTENBERG EBOOK TALES OF THE NORTH ***

Produced by volunteers who had
nothing to do with it

"""
FOOTER = """

*** END OF THE PROJECT GUTENBERG EBOOK TALES OF THE NORTH ***

Updated editions will replace the previous one. The Foundation is committed to complying with the laws."""


def story(path):
    """Text, title and other columns of the one story of a file, and the codes of its notes."""
    stories = read_stories(path)
    assert len(stories) == 1
    return stories[0].text, stories.titles[0], stories.metadata[0], [note.code for note in stories.report.notes]


def test_markdown_leaves_no_marks(make):
    path = make(
        "a.md",
        "---\ntitle: The Fox\nauthor: Nobody\ntags: [fable, fox]\n---\n\n"
        "He saw **ripe** _grapes_[^1] and [a vine](http://x.y), `code`, snow_white \\*here\\*.\n![picture](p.png)\n\n"
        "## Moral\n\n- One\n- Two\n\n[^1]: A note\n    over two lines.\n",
    )
    text, title, columns, notes = story(path)
    assert text == "He saw ripe grapes and a vine, code, snow_white *here*.\n\nMoral\n\nOne\n\nTwo"
    assert (title, columns) == ("The Fox", {"author": "Nobody", "tags": "fable, fox"})
    assert notes == ["left_out_footnotes"]
    assert story(make("b.md", f"{FOX}\n\n# Notes\n\nPerry 15."))[1] is None


def test_lines_that_a_program_broke_are_joined_and_poems_keep_theirs(make):
    text, title, _, notes = story(make("a.txt", f"{WRAPPED}\n\n{POEM}\n\n{WRAPPED}\n"))
    assert text.split("\n\n") == [WRAPPED.replace("\n", " "), POEM, WRAPPED.replace("\n", " ")]
    assert (title, notes) == (None, ["joined_lines"])
    assert story(make("b.txt", POEM))[0] == POEM
    indented = "\n".join("   " + paragraph for paragraph in (WRAPPED, WRAPPED))
    assert story(make("c.txt", indented))[0] == "\n\n".join([WRAPPED.replace("\n", " ")] * 2)


def test_words_are_put_together_at_line_ends(make):
    divided = """\
The old king of the mountains had a daughter whom nobody could make to laugh un-
til a fool came with a golden goose, to which the whole village stuck. The fool-
ish prince next door saw it, and the well-known innkeeper and his three daugh-
ters saw it, and the sexton, too. The daughter of the king laughed at the well-
known innkeeper, and the king gave her and half of his mountains to the lad."""
    text = story(make("a.txt", f"{divided}\n"))[0]
    assert "until a fool" in text
    assert "foolish prince" in text
    assert "three daughters" in text
    assert text.count("well-known") == 2
    assert "\n" not in text
    soft = story(make("b.txt", "The moun\u00adtain."))[0]
    assert soft == "The mountain."


def test_running_heads_that_interrupt_sentences_are_left_out(make):
    pages = []
    for number in range(1, 5):
        pages.append(f"{WRAPPED}\nThere he sat and\n\n{10 + number}   TALES OF THE NORTH\n\nfound it.\n")
    text, _, _, notes = story(make("a.txt", "\f".join(pages)))
    assert "TALES OF THE NORTH" not in text
    assert text.count("There he sat and found it.") == 4
    assert notes == ["left_out_heads", "joined_lines"]
    chapters = "\n\n".join(f"Chapter {number}\n\n{FOX}" for number in range(1, 5))
    assert story(make("b.txt", chapters))[0].count("Chapter") == 4


def test_the_license_of_project_gutenberg_is_left_out(make):
    text, title, columns, notes = story(
        make("a.txt", f"{HEADER}{WRAPPED}\n\n[Illustration: a well]\n\nHe died.{FOOTER}")
    )
    assert text == WRAPPED.replace("\n", " ") + "\n\nHe died."
    assert (title, columns) == ("Tales of the North", {"author": "Nobody at All"})
    assert notes == ["left_out_license", "joined_lines"]
    tail = f"{FOX}\n\nEnd of Project Gutenberg's Tales, by Nobody\n\nMost people start at our Web site.\n"
    assert story(make("b.txt", tail))[0] == FOX
    assert story(make("c.md", f"{HEADER}{FOX}{FOOTER}"))[0] == FOX


def test_a_first_line_that_looks_like_a_title_is_one(make):
    assert story(make("a.txt", f"THE WATER OF LIFE\n\n{WRAPPED}\n"))[1] == "THE WATER OF LIFE"
    assert story(make("b.txt", f"The end was near.\n\n{WRAPPED}\n"))[1] is None


def test_pages_of_the_web_are_their_main_part(make):
    page = f"""<!DOCTYPE html><html><head><title>Tales - a site</title><meta name="author" content="Nobody">
    <style>p {{}}</style></head><body><nav>Home</nav><main><h1>The Fox</h1><p>{FOX}<sup><a href="#n1">1</a></sup></p>
    <p>A line<br>and<br/>another</p><ul><li>One</li></ul><script>x()</script></main>
    <footer>2024</footer></body></html>"""
    text, title, columns, _ = story(make("a.html", page))
    assert text == f"{FOX}\n\nA line\nand\nanother\n\nOne"
    assert (title, columns) == ("The Fox", {"author": "Nobody"})
    assert story(make("b.htm", f"<p>{FOX}</p>"))[:2] == (FOX, None)
    with refused("no_text_inside", path="c.html"):
        read_stories(make("c.html", "<html><body><img src=x></body></html>"))


TEI = """<?xml version="1.0" encoding="UTF-8"?>
<{p}TEI xmlns{colon}{q}="http://www.tei-c.org/ns/1.0"><{p}teiHeader><{p}fileDesc><{p}titleStmt>
<{p}title type="sub">a file</{p}title><{p}title type="main">Tales of the North</{p}title><{p}author>Nobody</{p}author>
</{p}titleStmt><{p}publicationStmt><{p}date when="2001"/></{p}publicationStmt>
<{p}sourceDesc><{p}bibl><{p}date>1812</{p}date></{p}bibl></{p}sourceDesc></{p}fileDesc></{p}teiHeader>
<{p}text><{p}front><{p}titlePage>Title</{p}titlePage></{p}front><{p}body><{p}div><{p}head>The Fox</{p}head>
<{p}p>A fox saw <{p}hi>ripe</{p}hi> gra<{p}lb break="no"/>pes.<{p}note>Perry 15</{p}note>
  <{p}pb n="2"/>He <{p}choice><{p}sic>wnt</{p}sic><{p}corr>went</{p}corr></{p}choice>.</{p}p>
<{p}lg><{p}l>The fox went out,</{p}l><{p}l>He looked about.</{p}l></{p}lg></{p}div></{p}body></{p}text></{p}TEI>"""


@pytest.mark.parametrize("prefix", ["", "tei"])
def test_tei_has_its_title_author_and_date_in_the_header(make, prefix):
    parts = {"p": f"{prefix}:" if prefix else "", "q": prefix, "colon": ":" if prefix else ""}
    text, title, columns, notes = story(make("a.xml", TEI.format(**parts)))
    assert text == "The Fox\n\nA fox saw ripe grapes. He went.\n\nThe fox went out,\nHe looked about."
    assert (title, columns) == ("Tales of the North", {"author": "Nobody", "date": "1812"})
    assert notes == ["left_out_footnotes"]
    with refused("not_tei", path="b.xml"):
        read_stories(make("b.xml", "<feed><p>x</p></feed>"))


def test_documents_of_libreoffice_are_read_without_notes(tmp_path):
    content = """<?xml version="1.0"?><o:document-content xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    xmlns:t="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><o:body><o:text><t:h t:outline-level="1">The Fox</t:h>
    <t:p>A fox<t:note><t:note-citation>1</t:note-citation><t:note-body><t:p>Perry 15</t:p></t:note-body></t:note>
    saw<t:s/>ripe <t:span>grapes</t:span>.</t:p><t:p>A line<t:line-break/>and another</t:p></o:text></o:body>
    </o:document-content>"""
    with zipfile.ZipFile(tmp_path / "a.odt", "w") as archive:
        archive.writestr("content.xml", content)
    text, title, _, notes = story(tmp_path / "a.odt")
    assert text == "A fox saw ripe grapes.\n\nA line\nand another"
    assert (title, notes) == ("The Fox", ["left_out_footnotes"])


def test_rich_text_is_read_with_its_characters(make):
    content = r"{\rtf1\ansi\ansicpg1252{\fonttbl\f0 Arial;}\f0 Der K\'f6nig fiel.\par {\b Das} Ende \u8211?.\par}"
    assert story(make("a.rtf", content))[0] == "Der König fiel.\n\nDas Ende –."


@pytest.mark.parametrize("prefix", ["", "opf:"])
def test_books_are_read_in_the_order_of_their_spine_with_any_prefix(tmp_path, prefix):
    xmlns = "xmlns:opf" if prefix else "xmlns"
    package = f"""<?xml version="1.0"?><{prefix}package {xmlns}="http://www.idpf.org/2007/opf" xmlns:d="http://purl.org/dc/elements/1.1/">
    <{prefix}metadata><d:title>Tales</d:title><d:creator>Nobody</d:creator></{prefix}metadata><{prefix}manifest>
    <{prefix}item id="n" href="nav.xhtml" properties="nav"/><{prefix}item id="b" href="text/b%20b.xhtml"/>
    <{prefix}item id="a" href="text/a.xhtml"/></{prefix}manifest><{prefix}spine><{prefix}itemref idref="n"/>
    <{prefix}itemref idref="b"/><{prefix}itemref idref="a"/></{prefix}spine></{prefix}package>"""
    page = """<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"
    xmlns:epub="http://www.idpf.org/2007/ops"><head><title>x</title></head><body><h2>{}</h2><p>{}<a epub:type="noteref"
    href="#f">1</a></p><aside epub:type="footnote" id="f"><p>A note</p></aside></body></html>"""
    with zipfile.ZipFile(tmp_path / "a.epub", "w") as archive:
        archive.writestr(
            "META-INF/container.xml",
            '<c:container xmlns:c="urn:oasis:names:tc:opendocument:xmlns:container"><c:rootfiles>'
            '<c:rootfile full-path="OPS/book.opf"/></c:rootfiles></c:container>',
        )
        archive.writestr("OPS/book.opf", package)
        archive.writestr("OPS/nav.xhtml", page.format("Contents", "The König, The Fox"))
        archive.writestr("OPS/text/a.xhtml", page.format("The Fox", FOX))
        archive.writestr("OPS/text/b b.xhtml", page.format("The König", KING))
    text, title, columns, notes = story(tmp_path / "a.epub")
    assert text == f"The König\n\n{KING}\n\nThe Fox\n\n{FOX}"
    assert (title, columns, notes) == ("Tales", {"author": "Nobody"}, ["left_out_footnotes"])


def test_columns_of_a_page_are_read_one_after_the_other(tmp_path):
    left = [
        "A fox saw ripe grapes on a vine and",
        "leaped again and again, but could",
        "not reach them at all that sum-",
    ]
    right = [
        "mer. So he called them sour and left",
        "for the hills, where a crow laughed",
        "at him until the evening came.",
    ]
    write_pdf_columns(tmp_path / "a.pdf", [(left, right)], head="Tales of the North")
    text = story(tmp_path / "a.pdf")[0]
    assert text.endswith(" ".join([*left[:2], left[2][:-1]]) + " ".join(right))


def test_running_heads_of_pages_are_left_out(tmp_path):
    page = (["A fox saw ripe grapes on a vine and", "leaped again and again."], [])
    write_pdf_columns(tmp_path / "a.pdf", [page] * 4, head="Tales of the North")
    text, _, _, notes = story(tmp_path / "a.pdf")
    assert "Tales of the North" not in text
    assert text.count("A fox saw") == 4
    assert notes == ["left_out_heads"]


def test_vertical_columns_are_read_from_right_to_left(tmp_path):
    write_pdf_vertical(tmp_path / "a.pdf", ["onceafoxsawgrapes", "highonavineinautumn", "andleapedforthem"])
    text, _, _, notes = story(tmp_path / "a.pdf")
    assert "".join(text.split()) == "onceafoxsawgrapeshighonavineinautumnandleapedforthem"
    assert max(map(len, text.split())) > 10
    assert notes == []


def test_turned_labels_are_left_out_and_counted(tmp_path):
    lines = ["A fox saw ripe grapes on a vine", "and leaped again and again."]
    write_pdf_turned(tmp_path / "a.pdf", lines, label="Share of grapes")
    text, _, _, notes = story(tmp_path / "a.pdf")
    assert " ".join(text.split()) == " ".join(lines)
    assert notes == ["left_out_turned"]


LONG = " ".join([KING, FOX, "Then both of them went home and told it to their children."] * 2)


def tales(*titles, mark=""):
    return "\n\n".join(f"{mark}{title}\n\n{LONG}\n\nThe end of {title.lower()} came soon." for title in titles)


TITLE = "The King's Long Way Home to the Castle in the North of the World"
LISTED = f"Contents\n\n{TITLE} ... 3\n2. he fled\n\n" + tales("The King", "he fled").replace("The King\n", f"{TITLE}\n")


@pytest.mark.parametrize(
    ("name", "content", "split"),
    [
        ("a.md", "# Tales\n\nA word before.\n\n" + tales("The King", "The Fox", mark="## "), "headings"),
        ("b.md", tales("The King", "The Fox", mark="# ") + "\n\n### Moral\n\nBe kind.", "auto"),
        ("c.txt", tales("THE KING", "THE FOX"), "auto"),
        ("d.txt", LISTED, "auto"),
    ],
)
def test_a_book_is_divided_into_its_stories(make, name, content, split):
    stories = read_stories(make(name, content), layout=Layout(split=split))
    assert len(stories) == 2
    assert stories.story_ids == [f"{name[0]}-1", f"{name[0]}-2"]
    assert stories.titles[0].casefold().startswith("the king")
    assert [cells["number"] for cells in stories.metadata] == [1, 2]
    assert all(story.text.startswith(KING) for story in stories)
    assert "came soon." in stories[0].text
    assert len(read_stories(make(name, content))) == 1


def test_what_is_no_story_of_a_book_is_named(make):
    book = "# Contents\n\nThe King\n\nThe Fox\n\n" + tales("The King", "The Fox", mark="# ") + "\n\n# Imprint\n\n1812."
    stories = read_stories(make("a.md", f"A word before.\n\n{book}"), layout=Layout(split="headings"))
    assert stories.titles == ["The King", "The Fox"]
    assert [(note.code, note.values["n"]) for note in stories.report.notes] == [
        ("left_out_sections", 2),
        ("left_out_before", 3),
    ]
    assert [note.code for note in read_stories(make("b.md", book)).report.notes] == ["several_stories_inside"]


def test_chapters_with_numbers_alone_are_one_story(make):
    chapters = tales("I", "II.", "Chapter 3", mark="# ")
    assert len(read_stories(make("a.md", chapters), layout=Layout(split="auto"))) == 1


def test_books_of_a_folder_are_divided_with_the_columns_of_their_tables(tmp_path):
    (tmp_path / "north").mkdir()
    (tmp_path / "north" / "a.md").write_text("---\nauthor: Nobody\n---\n" + tales("The King", "The Fox", mark="# "))
    (tmp_path / "b.txt").write_text(FOX)
    (tmp_path / "about.csv").write_text("file,title,year\na.md,Northern Tales,1812\nb.txt,One,1900\n")
    stories = read_stories(tmp_path, layout=Layout(split="headings"))
    assert stories.story_ids == ["b", "north/a-1", "north/a-2"]
    assert stories.titles == ["One", "The King", "The Fox"]
    assert [cells.get("year") for cells in stories.metadata] == ["1900", "1812", "1812"]
    assert stories.metadata[1] == {
        "book": "a",
        "number": 1,
        "author": "Nobody",
        "file_name": "north/a.md",
        "year": "1812",
    }
