"""Submission archives: what is written can be read, and a check finds what the task would refuse."""

import io
import zipfile

import numpy as np
import pytest
from json_files import to_json_lines
from refusals import refused

from narrlit import submission
from narrlit.data.schema import Story, StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.errors import DataError
from narrlit.models.affine_steps import fit_steps
from narrlit.models.config import parse_steps
from narrlit.preprocessing.pseudonyms import PseudonymOptions, pseudonymize_texts
from narrlit.submission import check_steps, check_submission, read_answers, read_submission, write_submission


def lines(*rows):
    return to_json_lines(rows)


def saved(array, save=np.save):
    content = io.BytesIO()
    save(content, array)
    return content.getvalue()


def write_zip(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return path


def test_a_check_reads_both_tracks_and_counts_the_rows_of_their_files(tmp_path, world_files):
    answers = [True, False] * 4 + [True]
    vectors = np.arange(1.0, 109.0, dtype=np.float32).reshape(9, 12)
    write_submission(tmp_path / "s.zip", answers, vectors)
    tracks = {"track_a": world_files / "validation.jsonl", "track_b": world_files / "stories.jsonl"}
    checked = check_submission(tmp_path / "s.zip", **tracks)

    assert str(checked) == f"{tmp_path}/s.zip: valid, Track A 9 rows, Track B 9 rows of 12 dimensions"
    assert checked.answers == answers
    np.testing.assert_array_equal(checked.embeddings, vectors)

    write_submission(tmp_path / "few.zip", answers, vectors[:8])
    with refused("rows_of_track", path="few.zip", track="Track B", n=8, needed=9):
        check_submission(tmp_path / "few.zip", **tracks)

    write_submission(tmp_path / "none.zip", None, vectors)
    with refused("rows_of_track", path="none.zip", track="track_a.jsonl", n=0, needed=9):
        check_submission(tmp_path / "none.zip", **tracks)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"track_c__jsonl": "x"}, "track_c.jsonl"),
        ({"track_a__jsonl": '{"text_a_is_closer": 1}\n'}, "track_a.jsonl:1"),
        ({"track_a__jsonl": '{"text_a_is_closer": true}\n{"te\n'}, "track_a.jsonl:2"),
        ({"track_b__jsonl": lines({"embeddings": [0.5] * 9})}, "10 to 8192"),
        ({"track_b__jsonl": lines({"embeddings": [0.5] * 12}, {"embeddings": [0.5] * 11})}, "lists of the same length"),
        ({"track_b__jsonl": '{"embeddings": [NaN' + ", 1" * 11 + "]}\n"}, "row 1 contains NaN"),
        ({"track_b__jsonl": lines({"embeddings": [0.0] * 12})}, "all zeros"),
        (
            {"track_b__jsonl": lines({"embeddings": [1.0] * 12}, {"embeddings": [1e39] * 12})},
            "row 2 contains a number beyond",
        ),
        ({"track_b__npy": "nothing"}, "track_b.npy"),
        ({"track_b__npy": saved(np.array([{}], dtype=object))}, "track_b.npy"),
        ({"track_b__npy": saved(np.ones((2, 12)), np.savez)}, "not an array of numbers"),
        ({"track_b__npy": saved(np.ones((2, 12))), "track_b__jsonl": "x"}, "remove one"),
        ({"track_a__jsonl": lines(*[{"text_a_is_closer": True}] * 8)}, "track_a.jsonl has 8 rows, the test file has 9"),
    ],
)
def test_a_check_finds_what_the_task_would_refuse(tmp_path, files, words):
    path = write_zip(tmp_path / "s.zip", **files)
    with pytest.raises(DataError) as found:
        check_submission(path, track_a=synthetic_triples(StoryWorld(5).triples(9, "test"), StoryTable(), False))
    assert words in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("how", ["damaged", "encrypted", "strangely packed"])
def test_a_zip_that_cannot_be_read_costs_one_line(tmp_path, how):
    path = write_zip(tmp_path / "s.zip", track_a__jsonl=lines(*[{"text_a_is_closer": True}] * 50))
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")
    data = 30 + len("track_a.jsonl")
    if how == "damaged":
        content[data : data + 8] = b"\xff" * 8
    elif how == "encrypted":
        content[6] |= 1
        content[entry + 8] |= 1
    else:
        content[8] = content[entry + 10] = 99

    path.write_bytes(content)

    with refused("unreadable_submission", path="s.zip"):
        check_submission(path)


@pytest.mark.parametrize("name", ["track_a.jsonl", "track_b.npy", "track_b.jsonl"])
@pytest.mark.parametrize("honest", [True, False])
def test_a_zip_bomb_is_refused(tmp_path, monkeypatch, name, honest):
    monkeypatch.setattr(submission, "LARGEST_FILE", 2**16)
    path = write_zip(tmp_path / "bomb.zip", **{name: b"\n" * 2**20})
    if not honest:  # the declared size is a lie in both places where it stands
        content = path.read_bytes()
        path.write_bytes(content.replace((2**20).to_bytes(4, "little"), (100).to_bytes(4, "little")))

    with refused("large_member" if honest else "unreadable_submission"):
        check_submission(path)


def test_an_invalid_submission_never_replaces_a_good_one(tmp_path):
    path = tmp_path / "s.zip"
    embeddings = np.ones((3, 12), np.float32)
    contents = write_submission(path, [True, False], embeddings, rows_a=2, rows_b=3)

    assert contents.track_a_rows == 2
    assert contents.track_b_rows == 3
    assert contents.dimension == 12
    assert check_submission(path).contents == contents
    with refused("unusable_vector", path="track_b.npy", row=1):
        write_submission(path, None, np.full((3, 12), np.nan, np.float32))
    with refused("unusable_vector", path="track_b.npy", row=2, problem="contains a number beyond the range of float32"):
        write_submission(path, None, embeddings.astype(np.float64) * [[1], [1e39], [1]])
    with refused("unusable_vector", row=2):
        write_submission(path, None, embeddings * [[1], [0], [1]])
    with refused("rows_of_track", n=1, needed=2):
        write_submission(path, [True], None, rows_a=2)
    assert check_submission(path).contents == contents
    assert list(tmp_path.iterdir()) == [path]


def test_answers_are_read_from_every_kind_of_file(tmp_path, make):
    answers = [True, False, False]
    label = "text_a_is_closer"
    scored = [{label: a, "score_a": 0.5, "score_b": 0.25 * n} for n, a in enumerate(answers)]
    write_submission(tmp_path / "s.zip", answers, np.ones((2, 12), np.float32))
    files = [make("a.jsonl", [{label: a} for a in answers]), make("a.csv", f"n,{label}\n1,true\n2,False\n3,0\n")]

    for path in [*files, tmp_path / "s.zip"]:
        assert read_answers(path, 3) == (answers, None)

    read, scores = read_answers(make("predictions.jsonl", scored))
    assert read == answers
    assert scores.tolist() == [[0.5, 0.0], [0.5, 0.25], [0.5, 0.5]]

    read, embeddings = read_submission(tmp_path / "s.zip")
    assert read == answers
    assert embeddings.shape == (2, 12)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"text_a_is_closer": True}] * 2, "a.jsonl has 2 answers for 3 triples"),
        ([{"text_a_is_closer": True}, {"text_a_is_closer": None}], "a.jsonl:2: text_a_is_closer must be true or false"),
        ([{"label": True}], "a.jsonl:1: text_a_is_closer must be true or false"),
        ([{"text_a_is_closer": True, "score_a": 1.0}], "a.jsonl:1: 'score_b' is missing"),
    ],
)
def test_answers_that_do_not_fit_cost_one_line(make, content, words):
    with pytest.raises(DataError) as found:
        read_answers(make("a.jsonl", content), 3)
    assert words in str(found.value)


def test_a_submission_without_answers_gives_none(tmp_path):
    write_submission(tmp_path / "b.zip", None, np.ones((2, 12), np.float32))
    with refused("no_answers_in_submission", path="b.zip"):
        read_answers(tmp_path / "b.zip", 2)


NAMES = {"Anna": "PERSON", "Bert": "PERSON", "Cleo": "PERSON"}
HEROES = list(NAMES) * 10
STORIES = [Story(str(n), f"{name} walked {n * 17 % 23} miles" + " far" * n) for n, name in enumerate(HEROES)]


def replaced(scope):
    """A step that replaces names, by a mapping of each story or of three stories together."""

    def step(stories):
        size = 3 if scope == "triple" else 1
        all_texts = [story.text for story in stories]
        groups = [all_texts[start : start + size] for start in range(0, len(all_texts), size)]
        done = pseudonymize_texts(groups, PseudonymOptions("given"), [NAMES] * len(groups))
        texts = [text.text for group in done for text in group]
        return [Story(story.id, text) for story, text in zip(stories, texts, strict=True)]

    return f"pseudonymization with --scope {scope}", step


def encoded(stories):
    """Vectors of 12 numbers that depend on a story's text alone."""
    return np.stack([np.random.default_rng(list(s.text.encode())).normal(size=12) for s in stories])


def test_independent_steps_pass():
    steps = [replaced("story"), ("the encoder", encoded)]
    embeddings = encoded(replaced("story")[1](STORIES))
    sentence = "vectors of 16 stories alone, in other batches and in reverse order differ by at most 0"

    assert sentence in check_steps(steps, STORIES, embeddings)

    fixed = fit_steps(parse_steps("whiten"), embeddings)
    assert "at most" in check_steps([*steps, ("whitening", fixed)], STORIES, fixed(embeddings) * 5)
    assert "vectors of 1 story" in check_steps(steps, STORIES[:1])


def test_the_step_that_depends_on_other_stories_is_named():
    encoder = ("the encoder", encoded)
    embeddings = encoded(STORIES)
    whiten = parse_steps("whiten")
    fitted = ("post-processing fitted on the batch", lambda vectors: fit_steps(whiten, vectors)(vectors))
    noise = ("the encoder", lambda stories: encoded(stories) + 1e-4 * np.arange(len(stories))[:, None])

    for steps, name in (
        ([replaced("triple"), encoder], "pseudonymization with --scope triple"),
        ([encoder, fitted], "post-processing fitted on the batch"),
        ([replaced("story"), noise], "the encoder"),
    ):
        with refused("vector_depends_on_others", where="in other batches", step=name):
            check_steps(steps, STORIES, embeddings)
    assert "differ by at most 0.0" in check_steps([noise], STORIES, rounding_error=2**-7)  # bfloat16's
    with refused("step_fails", step="whiten", n=1, file="alone"):
        check_steps([encoder, ("whiten", lambda v: fit_steps(whiten, v if len(v) == 1 else embeddings)(v))], STORIES)

    undefined = ("the encoder", lambda stories: encoded(stories) * (np.nan if len(stories) == 1 else 1))
    with refused("vector_depends_on_others", where="alone", step="the encoder"):
        check_steps([undefined], STORIES)
    with refused("vector_depends_on_others", step="a step over all stories"):
        check_steps([encoder], STORIES, embeddings[::-1])
