"""What commands write: never over what they read, and over an earlier file only with --overwrite."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from deferred import name_and_rest
from json_files import write_json_lines

from narrlit.arguments import options_of
from narrlit.cli import main
from narrlit.commands import COMMANDS, TRAINING
from narrlit.data.tales import sample_tales
from narrlit.files import result_files

pytestmark = pytest.mark.usefixtures("memoized_minilm")

READ_ONLY = {"cache", "data diversity", "serve", "data views"}
"""Commands without a file to write; `cache rm` removes what can be computed again, `serve` has a folder of its own."""
RUNS = set(TRAINING)
"""Commands of Lightning: each run has a new folder."""
SERVER = "--base-url http://localhost:1/v1 --llm-model m"


@dataclass(frozen=True)
class Case:
    """A command without its output; the words that name the output, its files, and the files it reads."""

    words: str
    place: str
    files: tuple[str, ...]
    reads: tuple[str, ...] = ()

    @property
    def name(self):
        return name_and_rest(self.words.split())[0]

    @property
    def command(self):
        return [*self.words.split(), *self.place.split()]


FIGURES = "--out figures"
REPLACED = [
    Case(
        "evaluate validation.jsonl --baseline jaccard",
        FIGURES,
        tuple(f"figures/{name}" for name in result_files("evaluate")),
        ("validation.jsonl",),
    ),
    Case(
        "compare validation.jsonl --baselines jaccard,longer",
        FIGURES,
        tuple(f"figures/{name}" for name in result_files("compare")),
        ("validation.jsonl",),
    ),
    Case(
        "retrieval test_stories.jsonl --qrels qrels.tsv --model minilm",
        FIGURES,
        (*(f"figures/retrieval.{end}" for end in ("json", "csv", "md", "tex", "svg")), "figures/answers.csv"),
        ("test_stories.jsonl", "qrels.tsv"),
    ),
    Case(
        "data check train.jsonl validation.jsonl",
        FIGURES,
        tuple(f"figures/check_data.{end}" for end in ("json", "csv", "md", "tex", "svg")),
        ("train.jsonl", "validation.jsonl"),
    ),
    Case(
        "profile minilm --split test",
        FIGURES,
        tuple(f"figures/profile.{end}" for end in ("json", "csv", "md", "tex", "svg")),
    ),
    Case(
        "fuse validation.jsonl --models minilm --views validation_views.jsonl --grid 0.5 --folds 2",
        FIGURES,
        tuple(f"figures/fuse.{end}" for end in ("json", "csv", "md", "tex", "svg")),
        ("validation.jsonl", "validation_views.jsonl"),
    ),
    Case(
        "pairs test_stories.jsonl --model minilm --threshold -1",
        "--out p.csv",
        ("p.csv", "p-groups.csv"),
        ("test_stories.jsonl",),
    ),
    Case(
        "check-pairs test_stories.jsonl --model minilm --decisions decided.csv",
        "--out check.csv --groups groups.csv --triples triples.csv",
        ("check.csv", "groups.csv", "triples.csv"),
        ("test_stories.jsonl", "decided.csv"),
    ),
    Case(
        "catalog kinds.jsonl --model minilm --column kind --at-least 0",
        "--out proposals.csv --filled filled.csv",
        ("proposals.csv", "filled.csv"),
        ("kinds.jsonl",),
    ),
    Case(
        "map test_stories.jsonl --model minilm --k 2",
        "--out m.html",
        ("m.html", "m-neighbors.csv", "m-groups.csv", "m.svg"),
        ("test_stories.jsonl",),
    ),
    Case(
        "explain a.txt b.txt --model minilm --views test_views.jsonl",
        "--out e.html",
        ("e.html",),
        ("a.txt", "b.txt", "test_views.jsonl"),
    ),
    Case(
        "report jaccard longer --triples validation.jsonl --projection pca",
        "--out r.html",
        ("r.html",),
        ("validation.jsonl",),
    ),
    Case(
        "data mine train.jsonl --model minilm --per-example 1", "--out mined.jsonl", ("mined.jsonl",), ("train.jsonl",)
    ),
    Case("embed test_stories.jsonl --model minilm", "--out v.npy", ("v.npy", "v.columns.csv"), ("test_stories.jsonl",)),
    Case("embed test_stories.jsonl --model minilm", "--out v.csv", ("v.csv",), ("test_stories.jsonl",)),
    Case(
        "submit --model minilm --track-a test.jsonl --track-b test_stories.jsonl",
        "--out s.zip",
        ("s.zip",),
        ("test.jsonl", "test_stories.jsonl"),
    ),
    Case("submit --model minilm --track-a test.jsonl", "", ("submission.zip",), ("test.jsonl",)),
    Case(
        "data pseudonymize test_stories.jsonl --names test_views.jsonl",
        "--out p.jsonl --map n.jsonl",
        ("p.jsonl", "n.jsonl"),
        ("test_stories.jsonl", "test_views.jsonl"),
    ),
    Case(
        "data storyworld --train 2 --validation 2 --test 2",
        "--out world",
        tuple(
            f"world/{name}.jsonl"
            for name in (
                "train",
                "train_views",
                *(f"{split}{end}" for split in ("validation", "test") for end in ("", "_stories", "_views")),
            )
        ),
    ),
    Case("data sample", "tales", (*(f"tales/{tale['file_name']}" for tale in sample_tales()), "tales/tales.csv")),
]
UNREACHED = [  # not run here to the end: they need an index, translations, a language model or an extra
    Case(
        "evaluate validation.jsonl --model minilm --mteb StoryTriples,STS12",
        FIGURES,
        ("figures/StoryTriples.json", "figures/STS12.json", "figures/model_meta.json"),
        ("validation.jsonl",),
    ),
    Case("search test.index wolf", "--out found.csv", ("found.csv",)),
    Case(
        "data augment train.jsonl --pivots fr",
        "--out more.jsonl --report figures",
        ("more.jsonl", "figures/report.json", "figures/report.md", "figures/bertscore.svg"),
        ("train.jsonl",),
    ),
    Case(
        f"generate negatives train.jsonl {SERVER}",
        "--out n.jsonl",
        ("n.jsonl", "n.jsonl.report.json"),
        ("train.jsonl",),
    ),
    Case(
        f"judge validation.jsonl --model minilm {SERVER}",
        "--out a.jsonl",
        ("a.jsonl", "a.jsonl.report.json", "a.jsonl.report.md", "a.jsonl.rows.jsonl"),
        ("validation.jsonl",),
    ),
]
CONTINUED = [  # an option names a file that only grows
    Case(
        "data augment train.jsonl --pivots fr",
        "--out more.jsonl",
        ("more.translations.jsonl",),
        ("train.jsonl",),
    ),
    Case(f"generate negatives train.jsonl {SERVER}", "--out n.jsonl", ("n.jsonl.answers.sqlite",), ("train.jsonl",)),
    Case(
        f"generate negatives train.jsonl {SERVER}",
        "--out n.jsonl --answer-cache c.sqlite",
        ("c.sqlite",),
        ("train.jsonl",),
    ),
    Case(
        f"judge validation.jsonl --model minilm {SERVER}",
        "--out a.jsonl",
        ("a.jsonl.answers.sqlite",),
        ("validation.jsonl",),
    ),
    Case(
        f"judge validation.jsonl --model minilm {SERVER}",
        "--out a.jsonl --answer-cache c.sqlite",
        ("c.sqlite",),
        ("validation.jsonl",),
    ),
]
FIT = "--config configs/quickstart.yaml"
FOLDERS = [  # a folder must be new, or begun by the same command
    Case("export minilm", "--out new", ()),
    Case("average minilm", "--out new", ()),
    Case("demo", "--out new", ()),
    Case("index test_stories.jsonl", "--out new", (), ("test_stories.jsonl",)),
    Case("embed test_stories.jsonl --model minilm", "--out new", (), ("test_stories.jsonl",)),
    Case(f"crossval {FIT}", "--out new", ()),
    Case(f"ablate {FIT} --ablations o.yaml", "--out new", ()),
    Case(f"tune {FIT} --space s.yaml --trials 1", "--out new", ()),
    Case("reproduce hits --backbone minilm --data data", "--out .", ()),
]
CASES = [*REPLACED, *UNREACHED, *CONTINUED, *FOLDERS]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with all the files that the cases read."""
    folder = tmp_path_factory.mktemp("world")
    assert main(["data", "storyworld", "--out", str(folder), "--train", "6", "--validation", "6", "--test", "3"]) == 0
    for name, row in zip("ab", (folder / "test_stories.jsonl").read_text(encoding="utf-8").splitlines(), strict=False):
        (folder / f"{name}.txt").write_text(json.loads(row)["text"], encoding="utf-8")
    (folder / "qrels.tsv").write_text("0\t1\t1\n")
    (folder / "decided.csv").write_text("id_a,id_b,decision\n0,1,same\n0,2,different\n")
    kinds = [{"text": tale["text"], "kind": tale["atu"] if n % 3 else ""} for n, tale in enumerate(sample_tales())]
    write_json_lines(folder / "kinds.jsonl", kinds)
    return folder


@pytest.fixture
def files(world, tmp_path):
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    return tmp_path


def contents(folder):
    """Bytes of each file, by its path; the cache of embeddings is left out."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(folder / "runs")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def each(cases):
    return [pytest.param(case, id=f"{case.name}{n}") for n, case in enumerate(cases)]


def each_file(cases):
    """A parameter for each file of each case; of the many sample tales every ninth."""
    parameters = []
    for case in cases:
        command = case.name
        files = case.files[::9] if command == "data sample" else case.files
        parameters += [pytest.param(case, file, id=f"{command}-{file}") for file in files]
    return parameters


WRITERS = re.compile(r"\b(atomic_\w+|write_\w+|keep_report|\w*export\w*\.export|\.write)\(")
NAMES_AN_OUTPUT = re.compile(r"\bto write\b|\bwrite into\b|^folder\b.* for\b")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_option_that_names_an_output_is_declared_and_has_a_case(command):
    plan = options_of(command)
    declared = {name for name, _ in plan.outputs}
    naming = {option.name for option in plan.options if NAMES_AN_OUTPUT.search(option.help)}
    names = {option.name for option in plan.options}

    assert naming | ({"out", "map", "report", "log", "answer_cache"} & names) <= declared

    cases = [case for case in CASES if case.name == command.name]
    for option in declared:
        assert any(f"--{option.replace('_', '-')}" in case.place or case.words == command.name for case in cases), (
            option
        )

    module = command.function.split(":")[0]
    source = Path(import_module(module).__file__).read_text(encoding="utf-8")
    assert declared or not module.startswith("narrlit.commands") or not WRITERS.search(source)
    assert bool(declared) == (command.name not in READ_ONLY)


def test_every_command_is_in_a_list():
    assert {case.name for case in CASES} | READ_ONLY | RUNS == {command.name for command in COMMANDS} | TRAINING.keys()


@pytest.mark.long
@pytest.mark.parametrize("case", each(REPLACED))
def test_a_second_run_needs_overwrite_and_writes_what_it_declares(narrlit, files, case):
    pytest.importorskip("matplotlib")
    before = contents(files)
    assert narrlit(*case.command).code == 0

    first = contents(files)
    assert set(case.files) >= first.keys() - before.keys() != set()

    found = narrlit(*case.command)
    if not case.words.startswith("data sample"):  # which writes the same again
        assert found.code == 2
        assert "exists: give --overwrite to replace it, or name another" in found.err

    assert contents(files) == first

    (files / case.files[0]).write_text("mine\n")
    found = narrlit(*case.command, "--overwrite")
    assert found.code == 0, found.err
    assert contents(files)[case.files[0]] != b"mine\n"
    assert contents(files).keys() == first.keys()


@pytest.mark.parametrize(
    ("words", "record"),
    [
        ("export MODEL", "modules.json"),
        ("average MODEL", "average.json"),
        ("index test_stories.jsonl --model MODEL", "index.json"),
    ],
)
def test_a_folder_is_replaced_with_overwrite_if_the_same_command_wrote_it(narrlit, files, tiny, words, record):
    words = words.replace("MODEL", tiny()).split()
    (files / "others").mkdir()
    (files / "others" / "notes.txt").write_text("mine\n")
    assert narrlit(*words, "--out", "others", "--overwrite").code == 2
    assert contents(files / "others") == {"notes.txt": b"mine\n"}

    assert narrlit(*words, "--out", "new").code == 0
    (files / "new" / "old.txt").write_text("old\n")
    if words[0] != "index":  # which adds stories
        found = narrlit(*words, "--out", "new")
        assert found.code == 2
        assert "new exists: give --overwrite to replace it" in found.err
        assert (files / "new" / "old.txt").exists()

    found = narrlit(*words, "--out", "new", "--overwrite")
    assert found.code == 0, found.err
    assert (files / "new" / record).is_file()
    assert not (files / "new" / "old.txt").exists()
    assert not [path.name for path in files.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(("case", "file"), each_file([*REPLACED, *UNREACHED]))
def test_a_file_of_another_run_stays(narrlit, files, case, file):
    (files / file).parent.mkdir(exist_ok=True)
    (files / file).write_text("mine\n")
    before = contents(files)
    found = narrlit(*case.command)
    message = (
        rf"error: {re.escape(file)} exists[a-z ,]*: give --overwrite to replace it, or name another (file|folder)\n"
    )

    assert found.code == 2, found.err
    assert bool(re.search(message, found.err)), found.err
    assert contents(files) == before


@pytest.mark.parametrize("link", ["hard", "symbolic"])
@pytest.mark.parametrize(("case", "file"), each_file([case for case in CASES if case.reads]))
def test_no_output_replaces_what_is_read_even_with_overwrite(narrlit, files, case, file, link):
    for read in case.reads:
        (files / file).parent.mkdir(exist_ok=True)
        (files / file).unlink(missing_ok=True)
        (os.link if link == "hard" else os.symlink)(files / read, files / file)
        before = contents(files)
        found = narrlit(*case.command, *([] if case in CONTINUED else ["--overwrite"]))
        assert found.code == 2
        assert f"{file}: this file is read, or written by another option" in found.err
        assert contents(files) == before


@pytest.mark.parametrize("case", each(FOLDERS))
def test_a_folder_with_other_files_is_refused(narrlit, files, case):
    (files / "s.yaml").write_text("model.optimization.learning_rate: {choices: [0.001, 0.0001]}\n")
    (files / "o.yaml").write_text("seed_everything: 3\n")
    (files / "data/dev").mkdir(parents=True)
    shutil.copy(files / "validation.jsonl", files / "data/dev/dev_track_a.jsonl")
    folder = files / ("hits" if "reproduce" in case.words else "new")
    folder.mkdir()
    (folder / "mine.txt").write_text("mine\n")
    before = contents(files)
    found = narrlit(*case.command)

    assert found.code == 2, found.err
    assert "name a new folder" in found.err or "is not an index" in found.err, found.err
    assert contents(files) == before


def test_a_file_in_a_folder_that_is_read_is_read(narrlit, tiny, tmp_path):
    assert narrlit("data", "sample", "tales").code == 0

    before = contents(tmp_path)
    words = ("pairs", "tales", "--model", str(tiny()), "--overwrite", "--out")
    found = narrlit(*words, "tales/tales.csv")

    assert found.code == 2
    assert "tales/tales.csv: this file is read, with its folder" in found.err
    assert contents(tmp_path) == before
    assert narrlit(*words, "tales/pairs.csv").code == 0


def test_standard_input_is_not_written_over(files):
    before = contents(files)
    command = [sys.executable, "-m", "narrlit", "pseudonymize", "-", "--names", "test_views.jsonl", "--overwrite"]
    with (files / "test_stories.jsonl").open() as stories:
        done = subprocess.run(
            [*command, "--out", "test_stories.jsonl"],
            cwd=files,
            stdin=stories,
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 2, done.stderr
    assert "this file is read" in done.stderr, done.stderr
    assert contents(files) == before
