"""narrlit data augment: rows in, rows and their versions out, resumed, reported and refused."""

import json
import multiprocessing
import signal
import threading
import time
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
import torch
from command_lines import last_of
from json_files import read_json, read_json_lines
from tiny_translators import short_texts, tiny_marian, tiny_nllb
from tqdm import tqdm

from narrlit.cli import main
from narrlit.data.readers import read_examples
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.data.writers import write_examples
from narrlit.experiments.bertscore import load_bertscorer
from narrlit.preprocessing.back_translation import EMPTY, IDENTICAL, UNFINISHED, TranslationModel

REASONS = {EMPTY, IDENTICAL, UNFINISHED, "anchor is its positive", "anchor among its negatives"}
REASONS |= {"positive among its negatives", "equal to another version"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with en-fr, fr-en, en-hi and hi-en."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("en-fr", "fr-en", "en-hi", "hi-en")):
        tiny_marian(folder / name, seed=seed, ends=8.0)
    return folder


@pytest.fixture
def rows(tmp_path):
    """Eight rows, the first in a separate group."""
    texts = [f"{text}. {other}" for text, other in zip(short_texts(24), short_texts(25)[1:], strict=True)]
    indices = zip(*[iter(range(24))] * 3, strict=True)
    groups = ["mine", *[None] * 7]
    found = [TrainingExample(a, p, (n,), ("triple",), g) for (a, p, n), g in zip(indices, groups, strict=True)]
    examples = TrainingExamples(StoryTable.of(texts), found)
    write_examples(tmp_path / "rows.jsonl", examples)
    return examples


@pytest.fixture
def arguments(models, rows):
    """arguments(*options): a back-translation of rows.jsonl through French and Hindi into b.jsonl."""

    def build(*options, pivots="fr,hi", out="b.jsonl", score="none"):
        ways = ["--there", f"{models}/en-{{pivot}}", "--back", f"{models}/{{pivot}}-en", "--pivots", pivots]
        own = ["--beams", 2, "--device", "cpu", "--bertscore", score]
        return ["augment", "backtranslate", "rows.jsonl", "--out", out, *ways, *own, *options]

    return build


def rows_of(path):
    """Group and texts of each row."""
    examples = read_examples(path)
    return [(row.group, texts) for row, texts in zip(examples, examples.texts(), strict=True)]


def groups_of(path):
    """Texts of each group's rows, the example first."""
    groups = {}
    for name, texts in rows_of(path):
        groups.setdefault(name, []).append(texts)
    return groups


def test_rows_and_versions_of_one_group(narrlit, arguments, rows, tmp_path):
    found = narrlit(*arguments())
    assert found.code == 0, found.err

    written = rows_of(tmp_path / "b.jsonl")
    named = groups_of(tmp_path / "b.jsonl")
    assert {row.kinds for row in read_examples(tmp_path / "b.jsonl", strict=True)} == {("triple",)}

    names = list(named)
    groups = list(named.values())
    assert [group[0] for group in groups] == rows.texts()
    assert names[0] == "mine"
    assert [len(group) for group in groups] != [1] * len(rows)
    for group in groups:
        assert all(not {*texts} & {*group[0]} for texts in group[1:])
    assert f"b.jsonl: 8 examples and {len(written) - 8} versions of them" in found.err


def test_mixed_versions_replace_one_story_at_a_time(narrlit, arguments, rows, tmp_path):
    assert narrlit(*arguments()).code == 0

    found = narrlit(*arguments("--mixed", "--report", "told", out="mixed.jsonl"))
    assert found.code == 0, found.err

    report = read_json(tmp_path / "told" / "report.json")
    assert report["settings"]["mixed"]
    for pivot in report["pivots"].values():
        assert pivot["versions"] + sum(pivot["left_out"].values()) == 3 * len(rows)

    groups = list(groups_of(tmp_path / "mixed.jsonl").values())
    assert [group[0] for group in groups] == rows.texts()

    replaced = []
    for original, *versions in groups:
        assert len({original, *versions}) == len(versions) + 1 <= 7
        for texts in versions:
            ((place, new),) = [(i, text) for i, text in enumerate(texts) if text != original[i]]
            replaced.append((place, original[place], new))

    assert {place for place, _, _ in replaced} == {0, 1, 2}
    assert len(replaced) == report["versions"]
    for original, *versions in groups_of(tmp_path / "b.jsonl").values():
        for texts in versions:  # whole versions consist of the same back-translations
            assert {*zip(range(3), original, texts, strict=True)} <= {*replaced}


def test_versions_that_two_languages_share_are_written_once(narrlit, arguments, models, rows, tmp_path):
    for name in ("en-hi", "hi-en"):  # the same models for both languages
        (models / name.replace("hi", "fr2")).symlink_to(models / name)
    assert narrlit(*arguments("--mixed", "--report", "told", pivots="hi,fr2")).code == 0

    first, second = read_json(tmp_path / "told" / "report.json")["pivots"].values()
    assert second["versions"] == 0
    assert second["left_out"]["equal to another version"] == first["versions"] > 0


def test_the_report_counts_every_row_and_its_scores_are_those_of_the_versions(narrlit, arguments, tmp_path, tiny):
    found = narrlit(*arguments("--report", "told", score=tiny()))
    assert found.code == 0, found.err

    told = read_json(tmp_path / "told" / "report.json")
    assert found.out == (tmp_path / "told" / "report.md").read_text()
    assert told["rows"] == 8
    assert told["versions"] == sum(entry["versions"] for entry in told["pivots"].values()) > 3
    for entry in told["pivots"].values():
        assert entry["versions"] + sum(entry["left_out"].values()) == 8
        assert set(entry["left_out"]) <= REASONS
        assert entry["f1"]["n"] == entry["stories"] == 3 * entry["versions"]
    assert told["pivots"]["hi"]["left_out"], "the models shall fail now and then"
    assert "| hi    |" in found.out
    assert "0.83 ± 0.05" in found.out
    assert ET.parse(tmp_path / "told" / "bertscore.svg").getroot().tag.endswith("svg")


def test_scores_compare_each_version_with_its_own_source(narrlit, arguments, tmp_path, tiny):
    found = narrlit(*arguments("--report", "told", "--bertscore-layer", 2, pivots="fr", score=tiny()))
    assert found.code == 0, found.err

    told = read_json(tmp_path / "told" / "report.json")
    written = pairwise(rows_of(tmp_path / "b.jsonl"))
    sources, versions = [], []
    for (group, source), (other_group, version) in written:
        if group == other_group:
            sources += source
            versions += version
    scores = load_bertscorer(tiny(), 2, torch.device("cpu"))(versions, sources)

    for name in ("precision", "recall", "f1"):
        assert told["pivots"]["fr"][name]["mean"] == pytest.approx(getattr(scores, name).mean(), abs=1e-5)
    assert told["settings"]["bertscore_layer"] == 2


def test_nllb_translates_all_ways_with_one_model(narrlit, rows, tmp_path, monkeypatch):
    folder = tiny_nllb(tmp_path / "nllb", codes=("eng_Latn", "fra_Latn", "hin_Deva"))
    loaded = []
    init = TranslationModel.__init__
    monkeypatch.setattr(TranslationModel, "__init__", lambda *a, **k: loaded.append(1) or init(*a, **k))
    own = ["--nllb", folder, "--bertscore", "none", "--beams", 1, "--out", "n.jsonl"]
    found = narrlit("data", "augment", "rows.jsonl", "--pivots", "fr,hin_Deva", *own)

    assert found.code == 0, found.err
    assert loaded == [1]

    lines = read_json_lines(tmp_path / "n.translations.jsonl")
    assert list(dict.fromkeys((line["from"], line["to"]) for line in lines)) == [
        *(("eng_Latn", "fra_Latn"), ("fra_Latn", "eng_Latn"), ("eng_Latn", "hin_Deva"), ("hin_Deva", "eng_Latn"))
    ]
    assert len(read_examples(tmp_path / "n.jsonl")) > len(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "b.csv"], "b.csv: name a file that ends in .jsonl"),
        (["--pivots", "fr,de"], "en-de: "),
        (["--bertscore-layer", "2"], "--bertscore-layer 2: needs --bertscore"),
        (["--nllb", "n"], "--nllb translates in both directions"),
    ],
)
def test_mistakes_cost_one_line(options, message, narrlit, arguments, tmp_path):
    found = narrlit(*last_of(*arguments(*options)))
    assert found.code == 2
    assert message in found.err
    assert "Traceback" not in found.err
    assert not (tmp_path / "b.jsonl").exists()


@pytest.mark.long
def test_a_killed_job_resumes_and_translates_nothing_twice(arguments, narrlit, tmp_path):
    log = tmp_path / "b.translations.jsonl"
    command = [str(word) for word in arguments("--batch-tokens", 1, pivots="fr")]

    def job():
        torch.set_num_threads(1)  # a team of threads does not survive a fork
        tqdm.set_lock(threading.RLock())  # one of both processes would stay locked when this one is killed
        main(command)

    process = multiprocessing.get_context("fork").Process(target=job)
    process.start()
    while process.is_alive() and not (log.exists() and log.read_bytes().count(b"\n") > 10):
        time.sleep(0.002)
    process.kill()
    process.join()

    assert process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "b.jsonl").exists()

    log.write_bytes(log.read_bytes()[:-20])  # as a power cut may leave it
    found = narrlit(*command)
    assert found.code == 0, found.err

    keys = [json.loads(line)["key"] for line in log.read_bytes().splitlines() if line.endswith(b"}")]
    assert len(set(keys)) == len(keys)
    assert narrlit(*arguments(pivots="fr", out="whole.jsonl")).code == 0
    assert (tmp_path / "whole.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert len(keys) == len((tmp_path / "whole.translations.jsonl").read_bytes().splitlines())
