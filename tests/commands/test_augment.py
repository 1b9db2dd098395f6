"""narrlit augment backtranslate: rows in, rows and their versions out, resumed, told and refused."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from command_lines import last_of
from tiny_translators import short_texts, tiny_marian, tiny_nllb

from narrlit.data.readers import read_examples
from narrlit.data.records import Example, Negative
from narrlit.data.writers import write_examples
from narrlit.metrics.bertscore import load_bertscorer
from narrlit.models.back_translation import EMPTY, IDENTICAL, UNFINISHED
from narrlit.models.translation_model import TranslationModel
from narrlit.text.sentences import sentences

REASONS = {EMPTY, IDENTICAL, UNFINISHED, "anchor is its positive", "anchor among its negatives"}
REASONS |= {"positive among its negatives"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with en-fr, fr-en, en-hi and hi-en."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("en-fr", "fr-en", "en-hi", "hi-en")):
        tiny_marian(folder / name, seed=seed, ends=8.0)
    return folder


@pytest.fixture
def rows(tmp_path):
    """Eight rows, the first of a group of its own."""
    texts = [f"{text}. {other}" for text, other in zip(short_texts(24), short_texts(25)[1:], strict=True)]
    found = [Example(a, p, (Negative(n, "triple"),)) for a, p, n in zip(*[iter(texts)] * 3, strict=True)]
    found[0] = Example(*found[0].texts[:2], found[0].negatives, "mine")
    write_examples(tmp_path / "rows.jsonl", found)
    return found


@pytest.fixture
def arguments(models, rows):
    """arguments(*options): a back-translation of rows.jsonl through French and Hindi into b.jsonl."""

    def build(*options, pivots="fr,hi", out="b.jsonl", score="none"):
        ways = ["--there", f"{models}/en-{{pivot}}", "--back", f"{models}/{{pivot}}-en", "--pivots", pivots]
        own = ["--beams", 2, "--device", "cpu", "--bertscore", score]
        return ["augment", "backtranslate", "rows.jsonl", "--out", out, *ways, *own, *options]

    return build


def test_rows_and_versions_of_one_group(narrlit, arguments, rows, tmp_path):
    found = narrlit(*arguments())
    assert found.code == 0, found.err
    written = read_examples(tmp_path / "b.jsonl", strict=True).records
    groups = [[row for row in written if row.group == group] for group in dict.fromkeys(row.group for row in written)]
    assert [group[0].texts for group in groups] == [row.texts for row in rows]
    assert groups[0][0].group == "mine"
    assert [len(group) for group in groups] != [1] * len(rows)
    for group in groups:
        for version in group[1:]:
            assert not {*version.texts} & {*group[0].texts}
            assert [negative.kind for negative in version.negatives] == ["triple"]
    assert f"b.jsonl: 8 rows and {len(written) - 8} versions of them" in found.err


def test_a_version_is_what_its_log_holds(narrlit, arguments, rows, tmp_path, models):
    assert narrlit(*arguments(pivots="fr")).code == 0
    lines = [json.loads(line) for line in (tmp_path / "b.translations.jsonl").read_text().splitlines()]
    ways = [{line["text"]: line for line in lines if line["model"] == f"{models}/{way}"} for way in ("en-fr", "fr-en")]
    there, back = ways
    written = read_examples(tmp_path / "b.jsonl").records
    version = next(row for row, before in zip(written[1:], written, strict=False) if row.group == before.group)
    source = next(row for row in written if row.group == version.group)
    for text, other in zip(source.texts, version.texts, strict=True):
        assert other == " ".join(back[there[part]["translation"]]["translation"] for part in sentences(text))


def test_the_report_counts_every_row_and_its_scores_are_those_of_the_versions(narrlit, arguments, tmp_path, tiny):
    found = narrlit(*arguments("--report", "told", score=tiny()))
    assert found.code == 0, found.err
    told = json.loads((tmp_path / "told" / "report.json").read_text())
    assert found.out == (tmp_path / "told" / "report.md").read_text()
    assert told["rows"] == 8
    assert told["versions"] == sum(entry["versions"] for entry in told["pivots"].values()) > 3
    for entry in told["pivots"].values():
        assert entry["versions"] + sum(entry["left_out"].values()) == 8
        assert set(entry["left_out"]) <= REASONS
        assert entry["f1"]["n"] == entry["stories"] == 3 * entry["versions"]
    assert told["pivots"]["hi"]["left_out"], "the models shall fail now and then"
    assert "| hi |" in found.out and "0.83 ± 0.05" in found.out
    plot = ET.parse(tmp_path / "told" / "bertscore.svg").getroot()
    assert [text.text for text in plot.iter("{http://www.w3.org/2000/svg}text") if "n =" in text.text] == [
        f"{name} (n = {entry['stories']})" for name, entry in told["pivots"].items()
    ]


def test_scores_compare_each_version_with_its_own_source(narrlit, arguments, tmp_path, tiny):
    found = narrlit(*arguments("--report", "told", "--bertscore-layer", 2, pivots="fr", score=tiny()))
    assert found.code == 0, found.err
    told = json.loads((tmp_path / "told" / "report.json").read_text())
    written = read_examples(tmp_path / "b.jsonl").records
    pairs = [(source, row) for source, row in pairwise(written) if source.group == row.group]
    scorer = load_bertscorer(tiny(), 2, torch.device("cpu"))
    scores = scorer([t for _, row in pairs for t in row.texts], [t for source, _ in pairs for t in source.texts])
    for name in ("precision", "recall", "f1"):
        assert told["pivots"]["fr"][name]["mean"] == pytest.approx(getattr(scores, name).mean(), abs=1e-5)
    assert told["settings"]["bertscore_layer"] == 2


def test_without_scores_there_is_no_plot(narrlit, arguments, tmp_path):
    found = narrlit(*arguments("--report", "told"))
    assert found.code == 0, found.err
    assert {path.name for path in (tmp_path / "told").iterdir()} == {"report.json", "report.md"}
    assert "BERTScore" not in found.out


def test_nllb_translates_all_ways_with_one_model(narrlit, rows, tmp_path, monkeypatch):
    folder = tiny_nllb(tmp_path / "nllb", codes=("eng_Latn", "fra_Latn", "hin_Deva"))
    loaded = []
    init = TranslationModel.__init__
    monkeypatch.setattr(TranslationModel, "__init__", lambda *a, **k: loaded.append(1) or init(*a, **k))
    own = ["--nllb", folder, "--bertscore", "none", "--beams", 1, "--out", "n.jsonl"]
    found = narrlit("augment", "backtranslate", "rows.jsonl", "--pivots", "fr,hin_Deva", *own)
    assert found.code == 0, found.err
    assert loaded == [1]
    lines = [json.loads(line) for line in (tmp_path / "n.translations.jsonl").read_text().splitlines()]
    assert list(dict.fromkeys((line["from"], line["to"]) for line in lines)) == [
        *(("eng_Latn", "fra_Latn"), ("fra_Latn", "eng_Latn"), ("eng_Latn", "hin_Deva"), ("hin_Deva", "eng_Latn"))
    ]
    assert len(read_examples(tmp_path / "n.jsonl").records) > len(rows)


def test_the_same_command_again_translates_nothing_and_writes_the_same(narrlit, arguments, tmp_path, monkeypatch):
    assert narrlit(*arguments()).code == 0
    before = [(tmp_path / name).read_bytes() for name in ("b.jsonl", "b.translations.jsonl")]
    monkeypatch.setattr(TranslationModel, "generate", None)
    assert narrlit(*arguments()).code == 0
    assert [(tmp_path / name).read_bytes() for name in ("b.jsonl", "b.translations.jsonl")] == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "b.csv"], "--out b.csv: name a file that ends in .jsonl"),
        (["--pivots", "fr,de"], "en-de: there is no such folder, and the hub did not give it"),
        (["--bertscore", "nobody/nothing"], "--bertscore nobody/nothing: there is no such folder"),
        (["--bertscore-layer", "2"], "--bertscore-layer has no use with --bertscore none"),
        (["--nllb", "n"], "--there has no use beside --nllb"),
        (["--beams", "0"], "--beams 0: at least 1 is needed"),
    ],
)
def test_mistakes_are_told_in_a_line(options, message, narrlit, arguments, tmp_path):
    found = narrlit(*last_of(*arguments(*options)))
    assert found.code == 2
    assert message in found.err and "Traceback" not in found.err
    assert not (tmp_path / "b.jsonl").exists()


def test_a_wrong_encoder_is_told_before_anything_is_translated(narrlit, arguments, tmp_path):
    assert narrlit(*last_of(*arguments("--bertscore", "nobody/nothing"))).code == 2
    assert not (tmp_path / "b.translations.jsonl").exists()


@pytest.mark.slow
def test_a_killed_job_goes_on_and_makes_nothing_twice(arguments, narrlit, tmp_path):
    log = tmp_path / "b.translations.jsonl"
    paths = [str(Path(__file__).parents[1] / "helpers"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "narrlit", *map(str, arguments("--batch-tokens", 1))]

    def lines():
        return log.read_bytes().count(b"\n") if log.exists() else 0

    for more in (3, 11):
        goal = lines() + more
        job = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        while lines() < goal and job.poll() is None:
            time.sleep(0.002)
        job.send_signal(signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL
        assert not (tmp_path / "b.jsonl").exists()
    log.write_bytes(log.read_bytes()[:-20])  # as a power cut may leave it
    found = narrlit(*arguments("--batch-tokens", 1))
    assert found.code == 0, found.err
    assert "1 broken line; what it told is translated anew" in found.err
    keys = [json.loads(line)["key"] for line in log.read_bytes().splitlines() if line.endswith(b"}")]
    assert len(set(keys)) == len(keys)
    assert narrlit(*arguments("--batch-tokens", 1, out="whole.jsonl")).code == 0
    assert (tmp_path / "whole.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert len(keys) == len((tmp_path / "whole.translations.jsonl").read_bytes().splitlines())
