"""Hundreds of broken files for every reader of the commands: never a traceback, always one line, exit code 2."""

import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from json_files import read_json, to_json_lines

from narrlit.data.writers import write_table

LONG = "a" * 5000
STORY = {"text": "A king fell ill. He died.", "id": "s1"}
TRIPLE = {"anchor_text": "a b", "text_a": "c d", "text_b": "e f", "text_a_is_closer": True}
VIEWS = {**STORY, "theme": "Death.", "plot_events": ["He falls ill.", "He dies."], "outcome": "He is dead."}


def broken(content: bytes) -> dict[str, bytes]:
    """Variants of a file's bytes that no reader should accept silently, or that it may accept, but not crash on."""
    middle = len(content) // 2
    return {
        "empty": b"",
        "cut": content[:middle],
        "NUL": content[:middle] + b"\0" * 20 + content[middle:],
        "NULs": b"\0" * 300,
        "Latin-1": content[:middle] + b"\xe9\xff" + content[middle:],
        "UTF-16": content.decode("latin-1").encode("utf-16"),
        "random": bytes(np.random.default_rng(7).integers(0, 256, 2000, dtype=np.uint8)),
        "deep list": b"[" * 100_000,
        "deep object": b'{"a":' * 100_000,
        "long number": b"1" * 10_000,
        "null": b"null",
        "string": b'"text"',
        "list": b"[1, [2], {}]",
        "object": b'{"text": {"text": []}, "anchor_text": 3}',
        "NaN": b"NaN",
        "surrogate": b'{"text": "\\ud800", "anchor_text": "\\udfff", "text_a": "b", "text_b": "c"}',
        "escapes": b'{"\x1b[2J": "\x1b]0;x\x07"}',
        "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "long line": b'{"' + b"x" * 1_000_000 + b'": 1}',
        "carriage returns": content.replace(b"\n", b"\r"),
    }


def check(found, *, may_pass=False):
    """The command line answered as it should."""
    assert "Traceback" not in found.err, found.err[-2000:]
    assert "\x1b" not in found.err + found.out
    if found.code == 0 and may_pass:
        return
    errors = [line for line in found.err.splitlines() if line.startswith("narrlit: ")]
    assert found.code == 2, (found.code, found.err[-600:])
    assert len(errors) == 1, found.err[-600:]
    assert found.err.rstrip().splitlines()[-1] == errors[0]
    assert len(errors[0]) < 1500


def lines(*rows):
    return to_json_lines(rows).encode()


def written(suffix, *rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"f{suffix}")
        write_table(path, rows)
        return path.read_bytes()


FILES = {
    "s.jsonl": lines(STORY, STORY),
    "s.csv": b'id,text\n1,"A king, ill."\n2,A queen.\n',
    "s.txt": b"A king.\nA queen.\n",
    "t.jsonl": lines(TRIPLE, TRIPLE),
    "t.csv": b"anchor_text,text_a,text_b,text_a_is_closer\na,b,c,True\n",
    "s.xlsx": written(".xlsx", {"id": "1", "text": "A king."}),
    "s.parquet": written(".parquet", {"id": "1", "text": "A king."}),
    "s.md": b"# Title\n\nA king.\n",
    "l.jsonl": lines({"text_a_is_closer": True}, {"text_a_is_closer": False}),
    "v.jsonl": lines(VIEWS, VIEWS),
}


@pytest.fixture
def files(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


COMMANDS = {
    "s.jsonl": ["data", "views", "v.jsonl", "s.jsonl"],
    "s.csv": ["data", "views", "v.jsonl", "s.csv"],
    "s.txt": ["data", "views", "v.jsonl", "s.txt"],
    "s.xlsx": ["data", "views", "v.jsonl", "s.xlsx"],
    "s.parquet": ["data", "views", "v.jsonl", "s.parquet"],
    "s.md": ["data", "views", "v.jsonl", "s.md"],
    "t.jsonl": ["evaluate", "t.jsonl", "--baseline", "jaccard"],
    "t.csv": ["evaluate", "t.csv", "--baseline", "longer"],
    "l.jsonl": ["evaluate", "t.jsonl", "--labels", "l.jsonl", "--baseline", "tfidf"],
    "v.jsonl": ["data", "views", "v.jsonl", "s.jsonl"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_broken_data_costs_one_line(narrlit, files, name):
    for content in broken(FILES[name]).values():
        (files / name).write_bytes(content)
        found = narrlit(*COMMANDS[name])
        if found.code == 1 and COMMANDS[name][:2] == ["data", "views"]:  # its own finding: stories without views
            assert "without views" in found.out
            assert "Traceback" not in found.err
            continue
        check(found, may_pass=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_folders_and_broken_links_cost_one_line(narrlit, files, name):
    path = files / name
    for make in (lambda: None, lambda: path.symlink_to("nowhere"), lambda: path.symlink_to(path.name), path.mkdir):
        path.unlink(missing_ok=True)
        make()
        check(narrlit(*COMMANDS[name]))


@pytest.mark.parametrize("name", [LONG, "", "\x1b[31m.jsonl", "a\nb.jsonl"])
@pytest.mark.parametrize(
    "words",
    [
        ["embed", "NAME", "--model", "minilm", "--out", "v.npy"],
        ["embed", "s.jsonl", "--model", "NAME", "--out", "v.npy"],
        ["embed", "s.jsonl", "--model", "nothing/there", "--out", "NAME"],
        ["evaluate", "t.jsonl", "--labels", "NAME", "--baseline", "jaccard"],
        ["export", "NAME", "--out", "new"],
        ["submit", "--check", "NAME"],
        ["submit", "--track-a", "NAME", "--model", "minilm", "--out", "s.zip"],
        ["data", "views", "NAME", "s.jsonl"],
        ["cache", "ls", "NAME"],
        ["NAME"],
    ],
)
def test_absurd_names_cost_one_line(narrlit, files, words, name):
    if name == "" and words[:2] in (["cache", "ls"], ["embed", "NAME"], ["views", "check"]):
        pytest.skip("the folder itself, which can be read")
    check(narrlit(*[name if word == "NAME" else word for word in words]))


def test_broken_submissions_cost_one_line(narrlit, files):
    with zipfile.ZipFile(files / "good.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("track_a.jsonl", lines({"text_a_is_closer": True}))
        with archive.open("track_b.npy", "w") as member:
            np.save(member, np.ones((2, 12), np.float32))

    assert narrlit("submit", "--check", "good.zip").code == 0

    for content in broken((files / "good.zip").read_bytes()).values():
        (files / "s.zip").write_bytes(content)
        check(narrlit("submit", "--check", "s.zip"))
    for member in ("track_a.jsonl", "track_b.jsonl", "track_b.npy"):
        for content in broken(lines({"text_a_is_closer": True, "embeddings": [1.0] * 12})).values():
            with zipfile.ZipFile(files / "s.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(member, content)
            check(narrlit("submit", "--check", "s.zip"), may_pass=member.endswith(".jsonl"))


@pytest.mark.long
def test_broken_model_folders_cost_one_line(narrlit, files, tiny):
    names = [path.relative_to(tiny()) for path in Path(tiny()).rglob("*") if path.is_file()]
    assert len(names) > 5

    for name in names:
        content = (Path(tiny()) / name).read_bytes()
        variants = {key: broken(content)[key] for key in ("empty", "cut", "random", "list", "pointer", "deep object")}
        for changed in [*variants.values(), None]:
            shutil.rmtree("m", ignore_errors=True)
            shutil.copytree(tiny(), "m")
            Path("m", name).unlink() if changed is None else Path("m", name).write_bytes(changed)
            check(narrlit("embed", "s.jsonl", "--model", "m", "--out", "v.npy", "--overwrite"), may_pass=True)


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("sentence_bert_config.json", {"modality_config": {"text": {"method": "forward", "method_output_name": 3.5}}}),
        ("sentence_bert_config.json", {"modality_config": {"=1": {}}}),
        ("sentence_bert_config.json", {"module_output_name": "x"}),
        ("1_Pooling/config.json", {"pooling_mode": "x"}),
        ("1_Pooling/config.json", {"embedding_dimension": 10**12}),
        ("config_sentence_transformers.json", {"prompts": [1]}),
    ],
)
def test_settings_of_a_model_that_break_only_its_first_embedding_cost_one_line(narrlit, files, tiny, file, settings):
    shutil.copytree(tiny(), "m")
    path = Path("m", file)
    path.write_text(json.dumps(read_json(path) | settings))
    check(found := narrlit("embed", "s.jsonl", "--model", "m", "--out", "v.npy"))
    assert "model m" in found.err


@pytest.mark.parametrize("name", ["run.json", "checkpoints/best.ckpt"])
def test_broken_runs_cost_one_line(narrlit, files, name):
    for key, content in broken(b'{"checkpoints": {"best": "checkpoints/best.ckpt"}, "data": {}}').items():
        run = files / "run" / key.replace(" ", "-")
        (run / "checkpoints").mkdir(parents=True)
        (run / "run.json").write_text('{"checkpoints": {"best": "checkpoints/best.ckpt"}}')
        (run / "checkpoints/best.ckpt").write_bytes(b"")
        (run / name).write_bytes(content)
        for words in (["evaluate", "t.jsonl", "--model", run], ["export", run, "--out", files / f"out-{key}"]):
            check(narrlit(*words))


@pytest.mark.parametrize("target", ["/proc/x", "s.jsonl/x", "device", "pipe"])
def test_outputs_that_cannot_be_written_cost_one_line(narrlit, files, tiny, target):
    os.mkfifo(files / "pipe.npy")
    (files / "device.npy").symlink_to("/dev/null")
    check(narrlit("submit", "--track-b", "s.jsonl", "--model", tiny(), "--out", f"{target}.npy"))
    check(narrlit("embed", "s.jsonl", "--model", tiny(), "--out", f"{target}.npy"))


def test_a_full_disk_costs_one_line_and_leaves_nothing(narrlit, files, tiny, monkeypatch):
    def full(file, *_, **__):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    (files / "v.npy").write_bytes(b"old")
    monkeypatch.setattr("numpy.save", full)
    before = sorted(files.iterdir())
    check(found := narrlit("embed", "s.jsonl", "--model", tiny(), "--out", "v.npy", "--overwrite"))

    assert "no space left on device" in found.err

    left = [path for path in sorted(files.iterdir()) if path.name != "runs"]  # where embeddings are kept
    assert (files / "v.npy").read_bytes() == b"old"
    assert left == before


def test_outputs_never_replace_inputs(narrlit, files, tiny):
    before = {name: (files / name).read_bytes() for name in FILES}
    for words in (
        ["embed", "s.jsonl", "--model", tiny(), "--out", "s.jsonl"],
        ["embed", "s.jsonl", "--model", tiny(), "--views", "v.jsonl", "--fusion", "equal", "--out", "./v.jsonl"],
        ["submit", "--track-a", "t.jsonl", "--model", tiny(), "--out", "t.jsonl"],
        ["data", "mine", "t.jsonl", "--model", tiny(), "--out", "t.jsonl"],
        ["data", "pseudonymize", "s.jsonl", "--out", "x.jsonl", "--map", "x.jsonl"],
        ["data", "pseudonymize", "s.jsonl", "--out", "s.jsonl"],
    ):
        check(found := narrlit(*words))
        assert "name another" in found.err

    assert {name: (files / name).read_bytes() for name in FILES} == before
