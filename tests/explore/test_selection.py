"""Export of chosen stories: tables, graphs, bibliographies and lists."""

import json
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from measured import similarities_of
from refusals import refused

from narrlit.data.readers import read_rows
from narrlit.explore.bibliography import entry_keys, write_bibliography
from narrlit.explore.graph import write_palladio
from narrlit.explore.selection import select
from narrlit.library.story_frame import plain

STORIES = pd.DataFrame(
    {
        "id": ["wolf", "hood", "sea", "bank"],
        "title": ["The Wolf", "=HYPERLINK(A1)", "", "50 % of {all}"],
        "text": ["A wolf.", "A hood.", "+1 A boat.", "A bank."],
        "author": ["Perrault", None, "Melville", None],
        "year": [1697, None, 1851, 2020],
        "atu": ["333", "333", None, "@SUM"],
    }
)
VECTORS = np.array([[1, 0], [0.96, 0.28], [0, 1], [-1, 0]], dtype=np.float32)


@pytest.fixture
def tales():
    """Four stories, of which the first two are near."""
    return SimpleNamespace(
        frame=plain(STORIES), similarities=similarities_of(VECTORS), about={"source": "tales"}, measure="cosine"
    )


def rows_of(path):
    return [row.value for row in read_rows(path).rows]


def test_a_selection_has_the_chosen_stories_in_the_order_of_the_ids(tales):
    chosen = select(tales, ["sea", "wolf", "sea"])

    assert len(chosen) == 2
    assert chosen.table()["id"].tolist() == ["sea", "wolf"]
    assert str(chosen) == "1. sea\n2. The Wolf (wolf)"


def test_all_stories_are_chosen_without_ids(tales):
    assert len(select(tales)) == 4


@pytest.mark.parametrize(
    ("ids", "k", "refusal"),
    [
        (["wolve"], 5, {"code": "unknown_id", "source": "tales", "id": "wolve", "near": "wolf"}),
        ([], 5, {"code": "no_id"}),
        (["wolf"], 0, {"code": "at_least", "option": "k", "found": 0, "least": 1}),
    ],
)
def test_a_selection_that_can_not_be_made_is_refused(tales, ids, k, refusal):
    with refused(**refusal):
        select(tales, ids, k=k)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".jsonl"])
def test_a_table_is_read_back_with_all_columns(tales, tmp_path, suffix):
    select(tales, ["hood", "sea"]).write(tmp_path / f"chosen{suffix}")
    rows = rows_of(tmp_path / f"chosen{suffix}")

    assert [row["id"] for row in rows] == ["hood", "sea"]
    assert rows[0]["title"] == "=HYPERLINK(A1)"
    assert rows[1]["text"] == "+1 A boat."
    assert list(rows[0]) == list(STORIES)


def test_no_cell_of_a_table_is_a_formula(tales, tmp_path):
    select(tales).write(tmp_path / "chosen.csv")
    text = (tmp_path / "chosen.csv").read_text(encoding="utf-8")

    assert '"\'=HYPERLINK(A1)"' in text
    assert '"\'+1 A boat."' in text
    assert '"\'@SUM"' in text

    select(tales).write(tmp_path / "chosen.xlsx")
    sheet = pytest.importorskip("openpyxl").load_workbook(tmp_path / "chosen.xlsx").active
    assert "f" not in {cell.data_type for row in sheet for cell in row}


def test_a_graph_links_each_story_with_its_nearest_neighbors(tales, tmp_path):
    select(tales, ["bank", "wolf", "hood"], k=1).write(tmp_path / "chosen.graphml")
    graph = nx.read_graphml(tmp_path / "chosen.graphml")

    assert set(graph.nodes) == {"bank", "wolf", "hood"}
    assert set(map(frozenset, graph.edges)) == {frozenset({"wolf", "hood"}), frozenset({"bank", "hood"})}
    assert graph.edges["wolf", "hood"]["similarity"] == pytest.approx(0.96, abs=1e-6)
    assert graph.nodes["wolf"]["year"] == 1697
    assert "text" not in graph.nodes["wolf"]


def test_a_graph_of_one_story_is_refused(tales, tmp_path):
    with refused("no_pair"):
        select(tales, ["wolf"]).write(tmp_path / "chosen.graphml")


def test_a_bibliography_has_an_entry_for_each_story(tales, tmp_path):
    select(tales, ["wolf", "bank"]).write(tmp_path / "chosen.bib")

    assert (tmp_path / "chosen.bib").read_text(encoding="utf-8") == (
        "@misc{wolf,\n  title = {The Wolf},\n  author = {Perrault},\n  year = {1697},\n  note = {atu: 333},\n}\n"
        "\n@misc{bank,\n  title = {50 \\% of \\{all\\}},\n  year = {2020},\n  note = {atu: @SUM},\n}\n"
    )


TRANSLATED = plain(
    pd.DataFrame(
        {
            "id": ["a", "b"],
            "title": ["Der Wolf", ""],
            "text": ["A wolf.", "A sea."],
            "Author": ["Perrault, Charles", None],
            "Translator": ["Andrew Lang; Robert Samber", "Übersetzer-Kollektiv"],
            "Jahr": [1697.0, None],
            "book": ["Contes", None],
            "source": ["https://example.org/a", "Gutenberg #7"],
            "lat": [48.8, None],
            "lon": [2.1, None],
        }
    )
)


def test_translators_are_in_bibtex_ris_and_csl_json(tmp_path):
    for name in ("x.bib", "x.ris", "x.json"):
        write_bibliography(tmp_path / name, TRANSLATED)

    bibtex = (tmp_path / "x.bib").read_text(encoding="utf-8")
    assert bibtex.startswith("@incollection{a,")
    assert "  translator = {Andrew Lang and Robert Samber},\n  year = {1697},\n  booktitle = {Contes},\n" in bibtex
    ris = (tmp_path / "x.ris").read_bytes().decode()
    assert ris.startswith(
        "TY  - CHAP\r\nID  - a\r\nTI  - Der Wolf\r\nAU  - Perrault, Charles\r\nA4  - Lang, Andrew\r\n"
        "A4  - Samber, Robert\r\nPY  - 1697\r\nT2  - Contes\r\nUR  - https://example.org/a\r\n"
    )
    assert "N1  - source: Gutenberg #7" in ris  # no address
    first, second = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert first["translator"] == [{"family": "Lang", "given": "Andrew"}, {"family": "Samber", "given": "Robert"}]
    assert (first["issued"], first["container-title"]) == ({"date-parts": [[1697]]}, "Contes")
    assert (second["title"], second["translator"]) == ("b", [{"literal": "Übersetzer-Kollektiv"}])


def test_a_table_for_palladio_has_both_directions_and_coordinates(tales, tmp_path):
    pairs = pd.DataFrame({"id_a": ["a"], "id_b": ["b"], "similarity": [0.123456]})
    same = TRANSLATED.assign(title=["The Wolf", "The Wolf"])
    write_palladio(tmp_path / "x.csv", same, pairs)
    table = pd.read_csv(tmp_path / "x.csv")

    assert table[["Story", "Similar story"]].values.tolist() == [
        ["The Wolf (a)", "The Wolf (b)"],
        ["The Wolf (b)", "The Wolf (a)"],
    ]
    assert table.loc[0, ["Similarity", "Coordinates", "Translator"]].tolist() == [
        0.1235,
        "48.8,2.1",
        "Andrew Lang; Robert Samber",
    ]
    select(tales, ["wolf", "hood", "sea"]).write(tmp_path / "chosen.palladio.csv")
    assert "Similar story" in (tmp_path / "chosen.palladio.csv").read_text(encoding="utf-8")
    select(tales, ["wolf"]).write(tmp_path / "chosen.csl.json")
    assert json.loads((tmp_path / "chosen.csl.json").read_text(encoding="utf-8"))[0]["title"] == "The Wolf"


def test_special_characters_do_not_end_an_entry(tmp_path):
    frame = plain(pd.DataFrame({"id": ["a}b"], "title": ["\\input{x}\n}"], "text": ["t"], "place_of": ["a_b"]}))
    write_bibliography(tmp_path / "x.bib", frame)
    text = (tmp_path / "x.bib").read_text(encoding="utf-8")

    assert "@misc{a-b," in text
    assert "title = {\\textbackslash{}input\\{x\\} \\}}," in text
    assert "note = {place\\_of: a\\_b}," in text


def test_keys_are_distinct_whatever_the_ids():
    keys = entry_keys(["a b", "a-b", "A.b", "ä b", "灰", "姑"])

    assert keys == ["a-b", "a-b-2", "A-b-3", "a-b-4", "story", "story-2"]


def test_a_list_has_a_line_for_each_story(tales, tmp_path):
    select(tales, ["wolf", "sea"]).write(tmp_path / "chosen.txt")

    assert (tmp_path / "chosen.txt").read_text(encoding="utf-8") == "1. The Wolf (wolf)\n2. sea\n"


def test_another_format_is_refused(tales, tmp_path):
    with refused("wrong_suffix", path="chosen.doc"):
        select(tales).write(tmp_path / "chosen.doc")


def test_a_picture_shows_the_titles_of_three_stories_or_more(tales, tmp_path):
    pytest.importorskip("matplotlib")
    select(tales, ["wolf", "sea", "hood"]).write(tmp_path / "chosen.svg")

    assert "The Wolf" in (tmp_path / "chosen.svg").read_text(encoding="utf-8")
    with refused("few_for_map", limit=3):
        select(tales, ["wolf", "sea"]).write(tmp_path / "two.svg")


def test_integers_of_a_graph_keep_their_digits(tales, tmp_path):
    tales.frame["post"] = pd.Series([2**60 + 1, 2**63, None, -7], dtype=object)
    select(tales).write(tmp_path / "g.graphml")
    nodes = nx.read_graphml(tmp_path / "g.graphml").nodes
    assert [nodes[id].get("post") for id in tales.frame["id"]] == [2**60 + 1, str(2**63), None, -7]
