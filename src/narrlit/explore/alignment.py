"""Two stories with their linked passages as TEI, for editions and for tools that read alignments."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd

from narrlit.errors import printable
from narrlit.explore.bibliography import PEOPLE, references
from narrlit.explore.matched_pair import MatchedPair
from narrlit.files import atomic_path

TEI = "http://www.tei-c.org/ns/1.0"
ID = "{http://www.w3.org/XML/1998/namespace}id"
SIDES = ("a", "b")
LONGEST = 1_000_000
"""Maximum number of characters of a passage."""


def write_alignment(path: str | Path, pair: MatchedPair, model: str, stories: pd.DataFrame | None = None) -> None:
    """Write two stories as TEI P5: a `seg` for each passage, and a `link` for each link, the strongest first.

    `@n` of a link is its share of the score from 0 to 1; `@type` says whose best match the passage is: `both`, `a-to-b`
    or `b-to-a`.

    Args:
        path: file to write.
        pair: the two stories, with their passages and links.
        model: name of the model that linked them.
        stories: their rows (id, title, text, then the metadata columns), for the header; None: their ids are enough.

    Raises:
        OptionError: if the file can't be written.
    """
    described = [] if stories is None else references(stories)
    titles = [story.title for story in described] or list(pair.ids)
    root = ET.Element("TEI", xmlns=TEI)
    file = _add(_add(root, "teiHeader"), "fileDesc")
    _add(_add(file, "titleStmt"), "title", " – ".join(titles))
    _add(_add(file, "publicationStmt"), "p", "Written by narrlit.")
    sources = _add(_add(file, "sourceDesc"), "listBibl")
    for side, title in enumerate(titles):
        bibl = _add(sources, "bibl", corresp=f"#{SIDES[side]}")
        _add(bibl, "title", title)
        for role in PEOPLE if described else ():
            for name in described[side].people(role):
                _add(bibl, "author" if role == "author" else "editor", name, role=role)
        for field, name in (("year", "date"), ("publisher", "publisher"), ("note", "note")):
            if described and field in described[side].values:
                _add(bibl, name, described[side].values[field])
    encoding = _add(root[0], "encodingDesc")
    _add(encoding, "p", f"Passages were linked by the model {model}: each with its best match in the other story.")
    _add(encoding, "p", "@n of a link is its share of the similarity, from 0 to 1.")

    links = _add(_add(root, "standOff"), "linkGrp", type="alignment")
    score = max(pair.score, 1e-9)
    for link in pair.links.itertuples():
        target = f"#a.{link.passage_a} #b.{link.passage_b}"
        _add(links, "link", target=target, n=f"{link.share / score:.4f}", type=link.direction.replace(" ", "-"))
    group = _add(_add(root, "text"), "group")
    for letter, passages in zip(SIDES, pair.passages, strict=True):
        text = _add(group, "text", **{ID: letter})
        paragraph = _add(_add(text, "body"), "p")
        for number, passage in enumerate(passages, start=1):
            _add(paragraph, "seg", passage, **{ID: f"{letter}.{number}"}).tail = " "
    ET.indent(root[0])  # the text has the spaces of its passages alone
    ET.indent(root[1])
    with atomic_path(path) as temporary:
        ET.ElementTree(root).write(temporary, encoding="utf-8", xml_declaration=True)


def _add(parent: ET.Element, name: str, text: str = "", **attributes: str) -> ET.Element:
    """Add an element; XML has no control characters."""
    element = ET.SubElement(parent, name, attributes)
    element.text = printable(text, LONGEST) or None
    return element
