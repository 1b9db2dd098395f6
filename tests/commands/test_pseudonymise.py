"""narrlit pseudonymise: files in, files out, maps, and back to the letter."""

import csv
import json

import pytest

TRIPLE = {
    "anchor_text": "Anna fled to Oslo.",
    "text_a": "Boris met Anna in Rome.",
    "text_b": "Clara sings.",
    "text_a_is_closer": True,
    "source": "Anna",
}
VIEWS = {
    "text": "Anna fled to Oslo. She rests.",
    "theme": "The grief of Anna",
    "plot_events": ["Anna packs.", "Anna flees to Oslo."],
    "outcome": "",
    "id": 7,
}


def write(path, *rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_triples_by_story_and_by_triple(narrlit, tmp_path):
    source = write(tmp_path / "t.jsonl", TRIPLE, TRIPLE | {"text_b": None})
    found = narrlit("pseudonymise", source, "--out", "o.jsonl")
    assert (found.code, found.out) == (0, "")
    assert "o.jsonl: 2 rows, names replaced in 11 places: 7 Character, 4 Location" in found.err
    assert read(tmp_path / "o.jsonl")[0] == TRIPLE | {
        "anchor_text": "Character_A fled to Location_1.",
        "text_a": "Character_A met Character_B in Location_1.",
        "text_b": "Character_A sings.",
    }
    assert narrlit("pseudonymise", source, "--out", "o.jsonl", "--scope", "triple").code == 0
    first, second = read(tmp_path / "o.jsonl")
    assert first == TRIPLE | {
        "anchor_text": "Character_A fled to Location_1.",
        "text_a": "Character_B met Character_A in Location_2.",
        "text_b": "Character_C sings.",
    }
    assert second["text_b"] is None


def test_views_share_the_map_of_their_story(narrlit, tmp_path):
    source = write(tmp_path / "v.jsonl", VIEWS, {"id": 8, "text": ""})
    found = narrlit("pseudonymise", source, "--out", "o.jsonl", "--map", "m.json")
    assert "2 rows, names replaced in 6 places: 1 Character, 1 Location; 1 without a text stay as they are" in found.err
    assert read(tmp_path / "o.jsonl") == [
        {
            "text": "Character_A fled to Location_1. She rests.",
            "theme": "The grief of Character_A",
            "plot_events": ["Character_A packs.", "Character_A flees to Location_1."],
            "outcome": "",
            "id": 7,
        },
        {"id": 8, "text": ""},
    ]
    content = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert (content["scope"], content["backend"]) == ("story", "rules")
    (group,) = content["rows"][0]["groups"]
    assert group["entities"] == {"Character_A": ["Anna"], "Location_1": ["Oslo"]}
    assert content["rows"][0]["replacements"]["plot_events/1"] == [[0, 11, "Anna"], [21, 31, "Oslo"]]


def test_stories_of_triples_are_those_of_their_view_file(narrlit, tmp_path):
    texts = ["They trust Hope. Marbles roll away.", "Anna fled to Oslo.", "Boris sings."]
    write(tmp_path / "t.jsonl", dict(zip(("anchor_text", "text_a", "text_b"), texts, strict=True)))
    views = {
        "theme": "Mr. Marbles wins",
        "plot_events": ["Zora meets Anna Lee.", "Hope and Marbles rest."],
        "outcome": "",
    }
    write(tmp_path / "v.jsonl", *({"text": text, **views} for text in texts))
    for name in ("t", "v"):
        assert narrlit("pseudonymise", f"{name}.jsonl", "--out", f"{name}_anonymous.jsonl", "--map", "m.json").code == 0
    rows = read(tmp_path / "v_anonymous.jsonl")
    assert [row["text"] for row in rows] == list(read(tmp_path / "t_anonymous.jsonl")[0].values())
    assert rows[0]["text"] == "They trust Organization_1. Marbles roll away."
    assert rows[0]["theme"] == "Mr. Character_A wins"
    assert rows[1]["plot_events"][0] == "Character_C meets Character_A."
    assert narrlit("pseudonymise", "v_anonymous.jsonl", "--out", "back.jsonl", "--restore", "m.json").code == 0
    assert read(tmp_path / "back.jsonl") == read(tmp_path / "v.jsonl")


@pytest.mark.parametrize("scope", ["story", "triple"])
def test_back_to_the_letter(narrlit, tmp_path, scope):
    rows = [TRIPLE, TRIPLE | {"text_a": "ÉMILE sah “Émile’s” Character_B.\n\nÉmile ran."}, {"anchor_text": 5}]
    source = write(tmp_path / "t.jsonl", *rows)
    assert narrlit("pseudonymise", source, "--out", "o.jsonl", "--map", "m.json", "--scope", scope).code == 0
    assert read(tmp_path / "o.jsonl") != rows
    found = narrlit("pseudonymise", "o.jsonl", "--out", "back.jsonl", "--restore", "m.json")
    assert (found.code, found.err) == (0, "back.jsonl: 3 rows with their names again\n")
    assert read(tmp_path / "back.jsonl") == rows


def test_the_tables_and_texts_that_readers_know(narrlit, tmp_path, world_files):
    with (tmp_path / "s.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "text"], ["1", 'Anna,\n"Boris" and Clara met.']])
    assert narrlit("pseudonymise", "s.csv", "--out", "o.csv", "--map", "m.json").code == 0
    with (tmp_path / "o.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["id", "text"], ["1", 'Character_A,\n"Character_B" and Character_C met.']]
    (tmp_path / "s.txt").write_text("Anna ran.\n\nHe saw Boris.\n", encoding="utf-8")
    assert narrlit("pseudonymise", "s.txt", "--out", "o.txt").code == 0
    assert (tmp_path / "o.txt").read_text(encoding="utf-8") == "Character_A ran.\nHe saw Character_A.\n"
    assert narrlit("pseudonymise", world_files / "train.jsonl", "--out", "e.jsonl", "--scope", "triple").code == 0
    before, after = read(world_files / "train.jsonl"), read(tmp_path / "e.jsonl")
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert [n["kind"] for n in one["negatives"]] == [n["kind"] for n in other["negatives"]]
        assert "Character_A" in other["anchor"]


def test_pseudonymising_the_result_changes_nothing(narrlit, tmp_path):
    source = write(tmp_path / "v.jsonl", VIEWS)
    assert narrlit("pseudonymise", source, "--out", "one.jsonl").code == 0
    found = narrlit("pseudonymise", "one.jsonl", "--out", "two.jsonl")
    assert "1 rows, names replaced in 0 places: none" in found.err
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["v.jsonl", "--out", "o.jsonl", "--scope", "triple"], "scope triple has no use for the stories of v.jsonl"),
        (["v.jsonl", "--out", "o.csv"], "--out o.csv: name a file of the same kind as v.jsonl"),
        (["v.xml", "--out", "o.xml"], "v.xml: unknown kind of file '.xml'"),
        (["no.jsonl", "--out", "o.jsonl"], "no.jsonl does not exist"),
        (["ids.jsonl", "--out", "o.jsonl"], "ids.jsonl: no field of texts, its first row has id; known: text or story"),
        (["v.jsonl", "--out", "v.jsonl"], "--out v.jsonl: this file is"),
        (["v.jsonl", "--out", "o.jsonl", "--map", "m.txt"], "--map m.txt: name a file that ends in .json"),
        (["v.jsonl", "--out", "o.jsonl", "--map", "n.json", "--restore", "m.json"], "give one of them"),
        *(
            (["v.jsonl", "--out", "o.jsonl", "--restore", "m.json", *more], "--restore reads its map alone; leave")
            for more in (
                ["--scope", "triple"],
                ["--backend", "spacy"],
                ["--backend", "spacy", "--pipeline", "p"],
                ["--backend", "spacy+coref", "--coref-model", "c"],
            )
        ),
        (["v.jsonl", "--out", "o.jsonl", "--pipeline", "p"], "pipeline p: rules reads none; choose spacy, or"),
        (["v.jsonl", "--out", "o.jsonl", "--restore", "m.json", "--pipeline", "p"], "pipeline p: rules reads none"),
        (["v.jsonl", "--out", "o.jsonl", "--coref-model", "c"], "coref_model c: rules reads none"),
        (
            ["v.jsonl", "--out", "o.jsonl", "--backend", "spacy", "--coref-model", "c"],
            "coref_model c: spacy reads none",
        ),
        (["v.jsonl", "--out", "o.jsonl", "--restore", "no.json"], "no.json does not exist"),
        (["v.jsonl", "--out", "o.jsonl", "--restore", "v.jsonl"], "v.jsonl is no map of pseudonyms"),
        (["v.jsonl", "--out", "o.jsonl", "--restore", "v.xml"], "v.xml is no JSON"),
        (["v.jsonl", "--out", "o.jsonl", "--restore", "m.json"], "v.jsonl:1: not the row that m.json maps"),
        (["two.jsonl", "--out", "o.jsonl", "--restore", "m.json"], "m.json maps 1 rows but two.jsonl has 2"),
        (["done.jsonl", "--out", "o.jsonl", "--restore", "broken.json"], "its entry for done.jsonl:1 is broken"),
    ],
)
def test_one_line_for_each_mistake(narrlit, tmp_path, arguments, told):
    write(tmp_path / "v.jsonl", VIEWS)
    write(tmp_path / "two.jsonl", VIEWS, VIEWS)
    write(tmp_path / "ids.jsonl", {"id": 1})
    (tmp_path / "v.xml").write_text("<a>")
    assert narrlit("pseudonymise", "v.jsonl", "--out", "done.jsonl", "--map", "m.json").code == 0
    content = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    content["rows"][0]["replacements"]["text"] = [[0, 5, "Anna"]]
    (tmp_path / "broken.json").write_text(json.dumps(content))
    found = narrlit("pseudonymise", *arguments)
    assert (found.code, found.out) == (2, "")
    assert told in found.err
    assert len(found.err.splitlines()) == 1
    assert not (tmp_path / "o.jsonl").exists()
