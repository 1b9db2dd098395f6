"""narrlit judge against a server that knows the truth on some triples, lies on others, and makes no choice on more."""

import json
import zipfile
from dataclasses import replace
from functools import partial
from hashlib import sha256

import pytest
from command_lines import last_of
from json_files import read_json, read_json_lines
from llm_server import MODEL, llm_server, question

from narrlit.data.readers import read_triples
from narrlit.data.schema import StoryTable, Triples
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.data.writers import write_triples
from narrlit.experiments.evaluation import evaluate
from narrlit.results import Result
from narrlit.submission import check_submission

ROWS = 25
SAYS = ("truth", "lie", "truth", "nothing", "first")
"""What the server says to the rows in turn; `first` names whatever is shown first."""
UNUSABLE = sum(SAYS[row % len(SAYS)] == "nothing" for row in range(ROWS))


@pytest.fixture(scope="module")
def triples():
    """StoryWorld's, whose decoys deceive a random model nearly always; with every third label turned, less often."""
    table = StoryTable()
    found = synthetic_triples(StoryWorld(8).triples(ROWS, "validation"), table)
    return Triples(table, [replace(x, a_is_closer=x.a_is_closer == (place % 3 > 0)) for place, x in enumerate(found)])


@pytest.fixture
def server(triples):
    with llm_server(reply_of=partial(says, triples)) as running:
        yield running


@pytest.fixture
def judge(narrlit, tmp_path, triples, tiny, server):
    """judge(*options): judge t.jsonl into a.jsonl by the scripted server."""
    write_triples(tmp_path / "t.jsonl", triples)

    def run(*options, file="t.jsonl", out="a.jsonl"):
        given = ["--model", tiny(), "--base-url", server.url, "--llm-model", MODEL]
        return narrlit(*last_of("judge", file, "--out", out, *given, *options))

    return run


def says(triples, request):
    """The scripted reply to a request's JSON."""
    shown = json.loads(question(request))
    place = next(place for place, texts in enumerate(triples.texts()) if texts[0] == shown["anchor"])
    _, a, b = triples.texts()[place]
    kind = SAYS[place % len(SAYS)]
    if kind == "nothing":
        return "Both have their merits."
    closer = a if triples[place].a_is_closer == (kind == "truth") else b
    return json.dumps({"closer": "A" if kind == "first" or shown["A"] == closer else "B"})


def expected(triples, nearer, swap):
    """What the report must say, counted row by row."""
    found = dict.fromkeys(["fallbacks", "overrides", "right", "hybrid", "similarities", "agreed", "both", "chosen"], 0)
    for place, (triple, near) in enumerate(zip(triples, nearer, strict=True)):
        truth = triple.a_is_closer
        kind = SAYS[place % len(SAYS)]
        verdict = {"truth": truth, "lie": not truth, "nothing": None, "first": None if swap else True}[kind]
        found["fallbacks"] += verdict is None
        found["chosen"] += verdict is not None
        found["overrides"] += verdict is not None and verdict != near
        found["right"] += verdict is not None and verdict != near and verdict == truth
        found["hybrid"] += (near if verdict is None else verdict) == truth
        found["similarities"] += near == truth
        found["both"] += kind != "nothing"
        found["agreed"] += kind in ("truth", "lie")
    return found


def count(report, system, subset="all", metric="accuracy"):
    """Right answers and their number, of one figure of a report."""
    wanted = (system, subset, metric)
    (row,) = [row for row in report["figures"] if (row["system"], row["subset"], row["metric"]) == wanted]
    return round(row["value"] * row["n"]), row["n"]


@pytest.mark.parametrize("swap", [False, True])
def test_the_report_says_exactly_what_the_script_says(judge, triples, tmp_path, swap):
    found = judge(*["--swap"] * swap)
    assert found.code == 0, found.err

    rows = read_json_lines(tmp_path / "a.jsonl.rows.jsonl")
    report = read_json(tmp_path / "a.jsonl.report.json")
    nearer = [row["similarity_a"] > row["similarity_b"] for row in rows]
    wanted = expected(triples, nearer, swap)

    assert {True, False} == set(nearer)
    assert 0 < wanted["right"] < wanted["overrides"]

    assert count(report, "hybrid") == (wanted["hybrid"], ROWS)
    assert count(report, "similarities") == (wanted["similarities"], ROWS)
    assert count(report, "llm")[1] == wanted["chosen"]
    assert count(report, "llm", "shares", "overrides") == (wanted["overrides"], wanted["chosen"])
    assert count(report, "llm", "choice: overrides") == (wanted["right"], wanted["overrides"])
    assert count(report, "llm", "shares", "fallbacks") == (wanted["fallbacks"], ROWS)

    if swap:
        assert count(report, "llm", "shares", "same if swapped") == (wanted["agreed"], wanted["both"])
        assert f"A and B swapped: {2 * ROWS} requests for {ROWS} triples" in found.err

    answers = [row["text_a_is_closer"] for row in read_json_lines(tmp_path / "a.jsonl")]

    assert sum(x == triple.a_is_closer for x, triple in zip(answers, triples, strict=True)) == wanted["hybrid"]
    assert answers == [row["text_a_is_closer"] for row in rows]
    assert found.out == (tmp_path / "a.jsonl.report.md").read_text()


def test_errors_by_label_are_counted(judge, triples, tmp_path):
    assert judge().code == 0

    answers = [row["text_a_is_closer"] for row in read_json_lines(tmp_path / "a.jsonl")]
    report = read_json(tmp_path / "a.jsonl.report.json")
    for name, label in (("A", True), ("B", False)):
        right = [answer == label for answer, x in zip(answers, triples, strict=True) if x.a_is_closer == label]
        assert count(report, "hybrid", f"label: {name}") == (sum(right), len(right))


def test_a_prompt_with_fields_is_the_user_message(judge, server, triples, tmp_path):
    text = 'Like {{"closer": "A"}}. {anchor_text}\n1: {text_a} ({similarity_a})\n2: {text_b}'
    (tmp_path / "p.txt").write_text(f"# Source: me {{nothing}}\n---\n{text}\n")
    server.reply_of = lambda body: "A"

    assert judge("--prompt", "p.txt").code == 0

    contents = []
    for texts, row in zip(triples.texts(), read_json_lines(tmp_path / "a.jsonl.rows.jsonl"), strict=True):
        first = f'Like {{{{"closer": "A"}}}}. {texts[0]}\n1: {texts[1]} ({round(row["similarity_a"], 4)})\n'
        contents.append(f"{first}2: {texts[2]}")

    assert sorted(question(body) for body in server.bodies) == sorted(contents)
    assert {len(body["messages"]) for body in server.bodies} == {1}

    record = read_json(tmp_path / "a.jsonl.report.json")["settings"]
    assert record["prompt"] == {"file": "p.txt", "name": "judge", "digest": sha256(text.encode()).hexdigest()}
    # A different temperature changes the requests; the record contains what was sent.
    assert record["sampling"]["temperature"] == 0
    assert judge("--prompt", "p.txt", "--temperature", "0.1", "--overwrite").code == 0
    assert {body["temperature"] for body in server.bodies[ROWS:]} == {0.1}
    assert len(server.bodies) == 2 * ROWS
    assert read_json(tmp_path / "a.jsonl.report.json")["settings"]["sampling"]["temperature"] == 0.1


def test_options_of_other_commands_serve_the_encoder(judge):
    assert judge("--max-length", "16", "--device", "cpu").code == 0
    refused = judge("--coref")
    assert refused.code == 2
    assert "--coref-model and --cluster need --pseudonymize" in refused.err


def test_the_similarities_are_those_of_the_model(judge, tmp_path, tiny):
    judge()
    evaluated = evaluate(tmp_path / "t.jsonl", tiny())
    similarities = Result.read(tmp_path / "a.jsonl.report.json").estimate("similarities")
    assert similarities == pytest.approx(evaluated.estimate())


def test_the_same_command_requests_only_missing_choices_again(judge, server, tmp_path):
    assert judge().code == 0
    assert len(server.bodies) == ROWS

    first = (tmp_path / "a.jsonl").read_bytes()
    (tmp_path / "a.jsonl").unlink()
    found = judge()

    assert found.code == 0
    assert len(server.bodies) == ROWS + UNUSABLE
    assert (tmp_path / "a.jsonl").read_bytes() == first
    assert f"{UNUSABLE} answers, {ROWS - UNUSABLE} from the answer cache" in found.err

    # With swapping only the other order is new; its answers are others.
    refused = judge("--swap")
    assert refused.code == 2
    assert len(server.bodies) == ROWS + UNUSABLE
    assert (tmp_path / "a.jsonl").read_bytes() == first
    assert "a.jsonl exists, made with other settings: give --overwrite to replace it" in refused.err
    assert judge("--swap", "--overwrite").code == 0
    assert len(server.bodies) == 2 * ROWS + 2 * UNUSABLE


def test_a_submission_is_what_the_task_takes(judge, narrlit, tmp_path):
    assert judge().code == 0
    assert judge(out="s.zip").code == 0
    assert check_submission(tmp_path / "s.zip").contents.track_a_rows == ROWS
    assert narrlit("submit", "--check", "s.zip", "--track-a", "t.jsonl").code == 0

    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert archive.read("track_a.jsonl") == (tmp_path / "a.jsonl").read_bytes()


def test_labels_may_be_in_another_file_or_unknown(judge, triples, tmp_path):
    assert judge().code == 0

    whole = read_json(tmp_path / "a.jsonl.report.json")
    write_triples(
        tmp_path / "bare.jsonl", Triples(triples.stories, [replace(triple, a_is_closer=None) for triple in triples])
    )
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(triple.a_is_closer) + "\n" for triple in triples))

    assert judge("--labels", "l.jsonl", file="bare.jsonl", out="b.jsonl").code == 0

    apart = read_json(tmp_path / "b.jsonl.report.json")
    assert apart["figures"] == whole["figures"]

    found = judge(file="bare.jsonl", out="c.jsonl")
    assert found.code == 0, found.err
    bare = read_json(tmp_path / "c.jsonl.report.json")
    assert bare["notes"][0]["code"] == "unlabeled"
    assert bare["figures"] == [figure for figure in whole["figures"] if figure["subset"] == "shares"]


def test_triples_of_failed_requests_are_decided_by_similarities_and_sent_again(judge, server, tmp_path):
    server.modes = iter(["500"] * 5)
    found = judge("--retries", "0", "--concurrency", "1")
    assert found.code == 1
    assert f"5 of {ROWS} triples fell back (1, 2, 3, 4, 5): 5 request failed: HTTP 500; repeat the command" in found.err
    notes = {note["code"]: note["values"] for note in read_json(tmp_path / "a.jsonl.report.json")["notes"]}
    assert "5 request failed: HTTP 500" in notes["fallbacks"]["reasons"]

    rows = read_json_lines(tmp_path / "a.jsonl.rows.jsonl")
    assert len(read_json_lines(tmp_path / "a.jsonl")) == ROWS
    for row in rows[:5]:
        assert row["text_a_is_closer"] == (row["similarity_a"] > row["similarity_b"])

    sent = len(server.bodies)
    assert judge("--retries", "0", "--concurrency", "1").code == 0
    assert len(server.bodies) == sent + 5 + UNUSABLE - 1  # one of them was among those that failed


def test_the_key_is_written_nowhere(judge, server, monkeypatch, tmp_path):
    # Endings that no digest or story has; a few digits would occur in a similarity by chance.
    wrong, server.key = "sk-wrong-JyVkZxQv", "sk-secret-QzXwVkJy"
    monkeypatch.setenv("OPENAI_API_KEY", wrong)
    found = judge()

    assert found.code == 2
    assert "HTTP 401" in found.err

    monkeypatch.setenv("OPENAI_API_KEY", server.key)
    right = judge("--swap")
    assert right.code == 0

    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 9  # triples, answers, rows, two reports, answer cache; embeddings: two shards and their space
    for text in (found.err, found.out, right.err, right.out, *map(str, files)):
        assert "JyVkZxQv" not in text
        assert "QzXwVkJy" not in text


def test_every_row_is_needed(judge, server, tmp_path):
    with (tmp_path / "t.jsonl").open("a") as file:
        file.write('{"anchor_text": "x", "text_a": "", "text_b": "z"}\n')
    found = judge()

    assert found.code == 2
    assert len(server.bodies) == 0
    assert f"t.jsonl:{ROWS + 1}: empty text_a; correct the row" in found.err
    assert len(read_triples(tmp_path / "t.jsonl")) == ROWS


def test_views_and_pseudonyms_apply_only_to_the_similarities(judge, server, triples, tmp_path):
    given = ("--missing-views", "positional", "--fusion", "submitted")
    assert judge().code == judge(*given, out="b.jsonl").code == 0

    plain, fused = (read_json_lines(tmp_path / f"{name}.jsonl.rows.jsonl") for name in "ab")
    assert [row["similarity_a"] for row in plain] != [row["similarity_a"] for row in fused]
    assert read_json(tmp_path / "b.jsonl.report.json")["settings"]["fusion"] == "0.5,0.1,0.2,0.2"

    anchors = {texts[0] for texts in triples.texts()}
    assert all(json.loads(question(body))["anchor"] in anchors for body in server.bodies)

    refused = judge("--missing-views", "positional", out="c.jsonl")
    assert refused.code == 2
    assert "give --fusion" in refused.err
