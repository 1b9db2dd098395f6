"""Tables of the papers as data, what their rows need, the record that a reproduction resumes from, and differences."""

import json
import shutil
from pathlib import Path
from statistics import stdev

import numpy as np
import pytest
from json_files import read_json, read_json_lines, write_json_lines
from refusals import assert_refusal, refused
from results import check_result

import narrlit
from narrlit.configuration import packaged_names, read_configs
from narrlit.encoding.loading import load
from narrlit.experiments.fitting import parse_experiment_fit
from narrlit.experiments.plan import FitsResult
from narrlit.experiments.reproduction.backbones import Backbone
from narrlit.experiments.reproduction.cells import Computation, averaged
from narrlit.experiments.reproduction.fits import RowFits
from narrlit.experiments.reproduction.inputs import FILES, find_files
from narrlit.experiments.reproduction.record import RecordedCell, ReproductionRecord
from narrlit.experiments.reproduction.report import reproduction_result, why_not_compared
from narrlit.experiments.reproduction.reproduce import Reproduction
from narrlit.experiments.reproduction.tables import (
    SYSTEMS,
    PaperRow,
    TableCell,
    choose_cells,
    list_tables,
    read_tables,
)
from narrlit.experiments.run import Run
from narrlit.experiments.systems import answers_of
from narrlit.models.config import PRESETS
from narrlit.results import Estimate, Note, Result
from narrlit.statistics.significance import difference_interval, wilson_interval

TABLES_AND_FIGURES = {"comhis": (3, 1), "hits": (2, 5), "mendel292": (5, 6), "nlp_fsdm": (1, 0), "ttda704": (9, 3)}
COLUMNS = {f"{split} {track}" for split in ("dev", "test", "CV") for track in "AB"}
FITS = [(system, name) for system in TABLES_AND_FIGURES for name in read_tables(system).fits]
KEY = "1 | L6 | dev A"


def test_every_table_and_figure_of_the_five_papers_has_an_entry():
    for system, (tables, figures) in TABLES_AND_FIGURES.items():
        names = list(read_tables(system).tables)
        numbers = [name for name in names if not name.startswith("figure ")]
        assert numbers == ["5.1"] if system == "nlp_fsdm" else numbers == [str(n + 1) for n in range(tables)]
        assert names[len(numbers) :] == [f"figure {n + 1}" for n in range(figures)]

    assert sorted(TABLES_AND_FIGURES) == SYSTEMS


@pytest.mark.parametrize("system", TABLES_AND_FIGURES)
def test_rows_are_complete(system):
    content = read_tables(system)
    used = set()
    for table in content.tables.values():
        assert table.model_fields_set in ({"shows", "unavailable"}, {"shows", "time", "rows"})
        for row in table.rows.values():
            assert len({"fit", "evaluate", "unavailable"} & row.model_fields_set) == 1
            assert set(row.published) <= COLUMNS
            assert all(value is None or 0 <= value <= 1 for value in row.published.values())
            assert (row.fusion or "equal") in PRESETS
            named = row.encoder or "minilm"
            assert "/" in named or f"backbones/{named}.yaml" in packaged_names("backbones")
            used |= {row.fit} if row.fit else set()

    assert used == set(content.fits)


@pytest.mark.parametrize(("system", "name"), FITS)
def test_every_fit_is_instantiable(system, name):
    fit = read_tables(system).fits[name]
    assert set(fit.files.values()) <= set(FILES)
    layers = read_configs([*fit.configs, fit.files], {"data.validation": "dev.jsonl"})
    config, _ = parse_experiment_fit(layers, "a reproduction")
    assert config["data"]["init_args"]["train"] is not None


def test_published_figures_of_the_submitted_systems():
    cells = {
        ("hits", "2", "+ self-distillation", "test B"): 0.705,
        ("ttda704", "1", "all-mpnet-base-v2, pseudonymized", "test A"): 0.6925,
        ("ttda704", "3", "all-mpnet-base-v2, o3-mini", "test B"): 0.6875,
        ("ttda704", "7", "LaBSE, gpt-4o-mini", "dev B"): 0.65,
        ("nlp_fsdm", "5.1", "frozen encoder", "test B"): 0.625,
        ("mendel292", "3", "SequentialL6SynAugTestTrd", "test A"): 0.565,
        ("comhis", "1", "full system", "test B"): 0.66,
    }

    for (system, table, row, column), value in cells.items():
        assert read_tables(system).tables[table].rows[row].published[column] == value


def test_the_list_gives_costs_and_reasons():
    text = list_tables(SYSTEMS)
    assert text.count("table ") >= 20
    assert "table 2: linear and MLP heads on frozen embeddings, Track A\n      5 evaluations, 5 fits, 5 cross-" in text
    assert (
        "figure 2: BERTScore F1 of back-translations by pivot\n      not computed: a box plot; narrlit data augment"
        in text
    )


# Encoders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "paper", "given", "model", "stand_in"),
    [
        (None, "Qwen/Qwen3-Embedding-8B", [], "Qwen/Qwen3-Embedding-8B", None),
        (None, "Qwen/Qwen3-Embedding-8B", ["minilm"], "minilm", "minilm for Qwen3-Embedding-8B"),
        (None, "Qwen/Qwen3-Embedding-8B", ["minilm", "m/Qwen3-Embedding-8B"], "m/Qwen3-Embedding-8B", None),
        (None, "minilm", ["minilm"], "minilm", None),
        ("labse", "minilm", ["minilm"], "sentence-transformers/LaBSE", None),
        ("labse", "minilm", ["minilm", "x/LaBSE"], "x/LaBSE", None),
    ],
)
def test_the_encoder_of_a_row(row, paper, given, model, stand_in):
    backbone = Backbone.of(row, paper, given)
    assert backbone.model == model
    assert backbone.stand_in == stand_in


@pytest.mark.parametrize(
    ("system", "row", "given", "model"),
    [
        ("hits", None, ["minilm"], "minilm"),
        ("hits", None, ["some/encoder"], "some/encoder"),
        ("hits", None, [], "Qwen/Qwen3-Embedding-8B"),
        ("ttda704_track_a", "labse", ["x/LaBSE"], "x/LaBSE"),
        ("ttda704_track_a", None, ["x/all-mpnet-base-v2"], "x/all-mpnet-base-v2"),
    ],
)
def test_a_backbone_reaches_the_fit(system, row, given, model):
    paper = {"hits": "Qwen/Qwen3-Embedding-8B"}.get(system, "sentence-transformers/all-mpnet-base-v2")
    backbone = Backbone.of(row, paper, given)
    layers = read_configs([f"configs/{system}.yaml", *backbone.configs], {"data.train": "x"})
    config, _ = parse_experiment_fit(layers, "a test")
    encoder = config["model"]["init_args"]["encoder"]

    assert encoder["model"] == model

    # A stand-in is read as it was made: HITS' last-token pooling and instruction belong to Qwen.
    own = system == "hits" and not given
    assert (encoder["prompts"]["story"] is not None) == own
    assert (encoder["pooling"] == "last") == own


def test_a_missing_encoder_is_named():
    with refused("paper_encoder_not_available", model="nobody/nothing"):
        Backbone("nobody/nothing").require("paper_encoder_not_available")


# Cells and record ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, world_files):
    """A data folder in the official layout, of StoryWorld: the test's triples are those of dev."""
    data = tmp_path / "data"
    rows = read_json_lines(world_files / "validation.jsonl")
    files = {
        "dev/dev_track_a.jsonl": rows,
        "test/test_track_a.jsonl": [{k: v for k, v in row.items() if k != "text_a_is_closer"} for row in rows],
        "test/labels/test_track_a.jsonl": [{"text_a_is_closer": row["text_a_is_closer"]} for row in rows],
        "test/labels/test_track_b.jsonl": rows[:5],
    }
    for name, content in files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        write_json_lines(data / name, content)
    for name in ("sample/sample_track_a.jsonl", "synthetic/data_for_classification.jsonl"):
        (data / name).parent.mkdir()
        shutil.copy(world_files / "train.jsonl", data / name)
    return data


@pytest.fixture
def reproduction(folder, tmp_path):
    """reproduction(system, numbers, ...): begin one in out/SYSTEM, or resume it."""

    def begin(system="mendel292", numbers=("1",), seeds=1, options=(), backbones=("minilm",), labels=()):
        settings = ReproductionRecord(system=system, backbones=list(backbones), seeds=seeds, options=list(options))
        cells = choose_cells(system, numbers)
        return Reproduction.begin(settings, cells, folder, dict(labels), tmp_path / "out" / system)

    return begin


def result_of(one):
    """Compute all cells, and compare them with the published figures."""
    one.compute()
    return one.result(one.cells)


@pytest.fixture
def computed(monkeypatch):
    """Keys of the cells that are computed; every cell is .5 of 10. The number in the list ends the computation."""
    keys, until = [], [0]

    def compute(self, cell):
        keys.append(cell.key)
        if len(keys) == until[0]:
            raise KeyboardInterrupt
        return RecordedCell(n=10, accuracy=0.5, interval=[0.2, 0.8], flags={})

    monkeypatch.setattr(Computation, "compute", compute)
    return keys, until


def test_a_killed_reproduction_resumes(reproduction, computed):
    keys, until = computed
    until[0] = 3
    with pytest.raises(KeyboardInterrupt):
        reproduction().compute()

    until[0] = 0
    result = result_of(reproduction())
    assert keys == [KEY, "1 | L6 | test A", "1 | L12 | dev A", "1 | L12 | dev A", "1 | L12 | test A"]
    assert len(result.figures) == 4

    reproduction().compute()
    assert len(keys) == 5


def test_python_reproduces_tables_and_reads_them(folder, tmp_path, computed):
    labels = folder / "test/labels/test_track_b.jsonl"
    options = {"tables": ["1"], "backbones": ["minilm"], "data": folder, "labels_b": labels, "out": tmp_path / "out"}
    result = narrlit.reproduce("mendel292", **options)
    table = result.table()

    row = table.iloc[0]
    assert (row["system"], row["subset"], row["published"], row["value"]) == (
        "L6",
        "mendel292, table 1: dev A",
        0.55,
        0.5,
    )
    assert row["difference"] == pytest.approx(-0.05)
    check_result(result.recorded, tmp_path / "check")
    assert str(result.recorded) == str(result)

    result.write()
    assert (tmp_path / "out/mendel292/reproduce.md").read_text() == f"{result}\n"
    with refused("at_least", option="seeds", found=0, least=1):
        narrlit.reproduce("mendel292", **options, seeds=0)


def test_the_report_includes_earlier_tables(reproduction, computed):
    reproduction(numbers=("1",)).compute()
    second = reproduction(numbers=("4",))
    assert list(result_of(second).shown_tables()) == ["mendel292, table 4"]
    assert list(second.result(choose_cells("mendel292", ())).shown_tables()) == [
        "mendel292, table 1",
        "mendel292, table 4",
    ]


def test_a_record_of_other_settings_or_version_is_refused(reproduction, computed):
    first = reproduction()
    first.compute()
    for changed, change in (({"seeds": 2}, "seeds: 1 -> 2"), ({"options": ["x.yaml"]}, "options: [] -> ['x.yaml']")):
        with refused("other_configuration", path="record.json", change=change, option="folder"):
            reproduction(**changed)

    path = first.folder / "record.json"
    written = path.read_text()
    path.write_text(written.replace(f'"narrlit": "{narrlit.__version__}"', '"narrlit": "0.0.9"'))

    with refused("record_of_other_release", path="record.json", written_by="0.0.9", written_version=1):
        reproduction()

    path.write_text(written.replace('"version": 1', '"version": 7, "cells_by_name": true'))
    with refused("record_of_other_release", written_version=7, version=1):
        reproduction()

    path.write_text("{")
    with refused("broken_record_of_reproduction", path="record.json"):
        reproduction()

    path.write_text(written.replace('"n": 10', '"n": "ten"'))
    with refused("broken_record_of_reproduction", path="record.json") as caught:
        reproduction()
    assert caught.value.values["reason"].startswith("cells.1 | L6 | dev A.n: ")


def test_a_record_written_before_its_fields_were_typed_is_resumed(reproduction, computed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys, _ = computed
    cells = {
        KEY: {
            "n": 10,
            "correct": 4,
            "accuracy": 0.4,
            "interval": [0.1, 0.7],
            "ties": 0,
            "flags": {"num_evaluations": 3},
        },
        "1 | L6 | test A": {"not_run": "labels not given"},
    }
    before = {"version": 1, "narrlit": narrlit.__version__, "system": "mendel292", "backbones": ["minilm"]}
    before |= {"seeds": 1, "options": [], "files": {}, "stand_ins": {"augmented": "dev"}, "cells": cells}
    folder = Path("out/mendel292")
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps(before))
    one = reproduction()
    one.compute()

    assert keys == ["1 | L6 | test A", "1 | L12 | dev A", "1 | L12 | test A"]

    after = read_json(folder / "record.json")
    assert after["cells"][KEY] == cells[KEY]
    assert list(after) == list(before)
    assert {**after, "cells": {}} == {**before, "cells": {}}


def test_changed_data_are_refused(reproduction, folder):
    inputs = reproduction().inputs
    inputs.triples("dev A")
    (folder / "dev/dev_track_a.jsonl").write_text("{}\n")
    with refused("input_changed", path="dev_track_a.jsonl", record="record.json"):
        inputs.triples("dev A")


def test_columns_have_their_triples(reproduction, folder):
    inputs = reproduction().inputs
    assert [len(inputs.triples(column)) for column in ("dev A", "dev B", "test A", "test B")] == [9, 9, 9, 5]
    assert (inputs.triples("test A").labels == inputs.triples("dev A").labels).all()

    shutil.rmtree(folder / "test/labels")
    other = reproduction(labels={"labels_b": str(folder / "dev/dev_track_a.jsonl")}).inputs
    with refused("labels_not_given"):
        other.triples("test A")
    assert len(other.triples("test B")) == 9


def test_replacements_of_missing_files_are_recorded(reproduction, folder):
    inputs = reproduction("ttda704", numbers=("7",)).inputs
    (folder / "views").mkdir()
    (folder / "views/llama.jsonl").touch()

    def views(inputs, extractor):
        layers = RowFits(inputs).layers(PaperRow(fit="views", views=extractor, published={}))
        return [layer["data.views.files"] for layer in layers if "data.views.files" in layer]

    assert views(inputs, "o3-mini") == [str(folder / "views/llama.jsonl")]
    assert inputs.record.stand_ins == {"views": "llama.jsonl for those extracted by o3-mini"}
    with refused("no_generated_file", path="*gpt-4.1*.jsonl", command="generate views"):
        views(inputs, "gpt-4.1")

    (folder / "views/o3-mini.jsonl").touch()
    other = reproduction("ttda704", numbers=("7",)).inputs
    assert views(other, None) == [str(folder / "views/o3-mini.jsonl")]
    assert other.record.stand_ins == {}


def test_fewer_synthetic_triples_and_other_translations_are_recorded(reproduction, folder):
    inputs = reproduction().inputs
    rows = len((folder / "synthetic/data_for_classification.jsonl").read_text().splitlines())
    inputs.files("synthetic")
    inputs.files("augmented")
    assert inputs.record.stand_ins == {
        "synthetic": f"{rows} of the 1,900 official triples",
        "augmented": "dev triples without back-translations",
    }

    (folder / "augmented").mkdir()
    shutil.copy(folder / "dev/dev_track_a.jsonl", folder / "augmented/marian.jsonl")
    inputs.files("augmented")
    assert inputs.record.stand_ins["augmented"] == "marian.jsonl for back-translations by Google Translate"

    (folder / "augmented/marian.jsonl").rename(folder / "augmented/google.jsonl")
    other = reproduction().inputs
    other.files("augmented")
    assert other.record.stand_ins == {}


@pytest.mark.parametrize(
    ("fit", "options", "stand_in"),
    [
        (
            "pseudonymized",
            (),
            "pipeline en_core_web_sm, coref False, cluster names for "
            "pipeline en_core_web_trf, coref True, cluster mentions",
        ),
        (
            "pseudonymized",
            ({"data.loading.pseudonyms.pipeline": "en_core_web_trf", "data.loading.pseudonyms.coref": True},),
            "cluster names for cluster mentions",
        ),
        ("raw", (), None),
    ],
)
def test_the_pipeline_of_pseudonyms_is_a_stand_in(reproduction, monkeypatch, fit, options, stand_in):
    monkeypatch.setattr(Run, "finished", True)
    inputs = reproduction("ttda704", numbers=("5",), options=options).inputs
    RowFits(inputs).run(PaperRow(fit=fit, published={}), 42)
    assert inputs.record.stand_ins.get("pseudonyms") == stand_in


def test_another_judge_is_a_stand_in(reproduction, monkeypatch):
    inputs = reproduction("comhis").inputs
    monkeypatch.setenv("NARRLIT_LLM_MODEL", "vendor/tiny")
    Computation(inputs)._require_judge()
    assert inputs.record.stand_ins == {"judge": "tiny for Qwen3-30B-A3B-Instruct-2507"}

    own = reproduction("comhis").inputs
    monkeypatch.setenv("NARRLIT_LLM_MODEL", own.tables.judge)
    Computation(own)._require_judge()
    assert own.record.stand_ins == {}


def test_missing_negatives_are_mined_once(reproduction, folder, tiny):
    inputs = reproduction("hits", numbers=("1",), backbones=(tiny(),)).inputs
    row = PaperRow(fit="baseline", published={})
    (mined,) = inputs.files("negatives", row)

    assert mined == inputs.folder / "negatives.jsonl"

    rows = mined.read_text().splitlines()
    assert len(rows) == len((folder / "synthetic/data_for_classification.jsonl").read_text().splitlines())
    assert inputs.record.stand_ins["negatives"] == "mined by model, for those that a language model generated"
    assert str(mined) in inputs.record.files

    before = mined.stat().st_mtime_ns
    assert inputs.files("negatives", row) == [mined]
    assert mined.stat().st_mtime_ns == before


def test_a_cross_validated_cell_is_the_pooled_last_epoch(reproduction, monkeypatch):
    pooled = Estimate(2 / 3, 0.35, 0.88, 9, "wilson").row("trained", "accuracy_last_epoch", deviation=0.1)
    best = Estimate(1.0, 0.7, 1.0, 9, "wilson").row("trained", "accuracy_best_epoch", deviation=0.0)
    of_a_fold = Estimate(0.6, 0.3, 0.9, 5, "wilson").row("trained", "accuracy_last_epoch", fold=0)
    called = []

    def crossval(config, *, out):
        called.append(config)
        return FitsResult.of("crossval", [pooled, best, of_a_fold], folder=out, runs={})

    monkeypatch.setattr("narrlit.experiments.reproduction.fits.crossval", crossval)
    one = reproduction(numbers=("2",), options=[{"trainer.max_epochs": 1}])
    cell = next(cell for cell in one.cells if cell.column == "CV A")
    result = Computation(one.inputs).compute(cell)

    assert (result.accuracy, result.n, result.interval) == (2 / 3, 9, [0.35, 0.88])
    assert result.standard_deviation == 0.1
    assert result.stand_in is None
    assert called[0][-1] == {"trainer.max_epochs": 1}
    assert one.record.stand_ins == {"augmented": "dev triples without back-translations"}


def test_fusion_weights_share_one_embedding(reproduction, folder, tiny, monkeypatch):
    (folder / "views").mkdir()
    rows = read_json_lines(folder / "dev/dev_track_a.jsonl")
    texts = {row[name] for row in rows for name in ("anchor_text", "text_a", "text_b")}
    views = [{"text": t, "theme": t[:40], "plot_events": [t[40:80]], "outcome": t[80:]} for t in sorted(texts)]
    write_json_lines(folder / "views/o3-mini.jsonl", views)
    one = reproduction("ttda704", numbers=("2",), backbones=(tiny(),))
    labeled = one.inputs.triples("dev B")
    computation = Computation(one.inputs)
    row = PaperRow(evaluate="{encoder}", fusion="equal", published={})
    equal = computation.answers(row, tiny(), labeled)
    monkeypatch.setattr("narrlit.models.embedding.part_embeddings", None)
    full = computation.answers(row.model_copy(update={"fusion": "full_only"}), tiny(), labeled)
    monkeypatch.undo()
    views = str(folder / "views/o3-mini.jsonl")
    expected = answers_of(load(tiny(), views=views, fusion="equal", long="truncate"), labeled)

    assert np.abs(equal.scores - expected.scores).max() < 1e-5
    assert np.abs(equal.scores - full.scores).max() > 1e-3


def test_seeds_are_averaged():
    results = [RecordedCell(n=20, accuracy=a, flags={"transductive": True}) for a in (0.5, 0.6, 0.7)]
    mean = averaged(results)
    assert mean.accuracy == pytest.approx(0.6)
    assert mean.standard_deviation == pytest.approx(stdev([0.5, 0.6, 0.7]))
    assert mean.interval == pytest.approx(list(wilson_interval(12, 20)))
    assert mean.flags == {"transductive": True}
    assert mean.seeds == results
    assert averaged(results[:1]) is results[0]

    broken = averaged([*results, RecordedCell(n=20, accuracy=None)])
    assert broken.accuracy is None
    assert broken.interval is None


def compared(result, published=0.55, published_n=200, column="dev B"):
    """A cell of 200 triples, its result, and the reproduction of the cell alone."""
    cell = TableCell("1", "row", column, published, published_n, PaperRow(published={}))
    recorded = RecordedCell(**{"n": 200, "accuracy": 0.55, **result})
    record = ReproductionRecord(system="mendel292", backbones=[], seeds=1, options=[], cells={cell.key: recorded})
    return cell, recorded, reproduction_result(read_tables("mendel292"), record, [cell])


@pytest.mark.parametrize(
    ("result", "options", "expected"),
    [
        ({}, {}, None),
        ({}, {"published": None}, "no published figure"),
        ({"flags": {"trained_on_validation": True}}, {}, "trained on validation: no result"),
        ({"flags": {"mined_validation": True}}, {}, "trained on validation: no result"),
        ({"flags": {"mined_validation": True}}, {"published": 0.62, "column": "test B"}, None),
        ({"flags": {"transductive": True}}, {"published": 0.62}, None),
        ({"accuracy": None}, {}, "scores are NaN"),
        ({"not_run": "labels not given"}, {}, "labels not given"),
        ({"not_run": "x is not available"}, {}, "not run"),
    ],
)
def test_why_a_cell_has_no_difference(result, options, expected):
    cell, recorded, found = compared(result, **options)
    assert why_not_compared(cell, recorded) == expected
    assert found.figures["reason"].tolist() == [expected]
    assert found.differences.empty == (expected is not None)


def test_a_difference_has_the_interval_of_both_sides():
    (row,) = compared({}, published=0.65, published_n=40)[2].differences.to_dict("records")
    assert row["value"] == pytest.approx(-0.1)
    assert (row["low"], row["high"]) == pytest.approx(difference_interval(0.55, 200, 0.65, 40))
    # As wide as 40 answers of the paper make it: 0 lies in it, though .65 lies outside of our own interval.
    assert wilson_interval(110, 200)[1] < 0.65
    assert row["high"] > 0

    (row,) = compared({}, published=0.65, published_n=None)[2].differences.to_dict("records")
    assert row["value"] == pytest.approx(-0.1)
    assert np.isnan(row["low"])


def test_the_papers_numbers_of_triples():
    cells = [cell for system in SYSTEMS for cell in choose_cells(system, ())]
    known: dict[str, set[int | None]] = {}
    for cell in cells:
        known.setdefault(cell.column, set()).add(cell.published_n)
    assert known == {"CV A": {None}, "dev A": {200}, "dev B": {40, 200}, "test A": {400}, "test B": {399, 400}}
    # Each figure is a whole number of right answers, up to the rounding of its digits: .6391 is 255/399, not k/400.
    for cell in cells:
        if cell.published is not None and cell.published_n is not None:
            digits = max(2, len(repr(cell.published)) - 2)
            correct = round(cell.published * cell.published_n)
            assert cell.published == pytest.approx(correct / cell.published_n, abs=0.5001 * 10**-digits), cell
    of_table_3 = {cell.published: cell.published_n for cell in choose_cells("ttda704", ("3",))}
    assert of_table_3.pop(0.6875) == 400
    assert set(of_table_3.values()) == {399}
    assert {cell.published_n for cell in choose_cells("ttda704", ("7",))} == {40}

    # What they are inferred from: every figure on dev is a multiple of 1/40.
    figures = [cell.published for cell in choose_cells("ttda704", ("2", "7")) if cell.published is not None]
    assert len(figures) == 16
    assert all((40 * figure) == pytest.approx(round(40 * figure)) for figure in figures)


def test_there_are_differences_but_no_verdict(reproduction, computed):
    result = result_of(reproduction())
    low, high = difference_interval(0.5, 10, 0.55, 200)

    row = result.shown_tables()["mendel292, table 1"][0]
    assert row["difference to published"] == f"-0.050 [{low:+.3f}, {high:+.3f}]"
    assert result.notes[-1].code == "to_published"
    verdicts = ("verdict", "agrees", "differs", "within", "above", "below")
    assert not [word for word in verdicts if word in str(result).lower()]

    row = result_of(reproduction(numbers=("2",))).shown_tables()["mendel292, table 2"][0]
    assert row["mendel292, table 2"] == "CV A"
    assert row["difference to published"] == "-0.006"


def test_a_missing_file_is_named_with_its_remedy(tmp_path):
    with refused("no_official_file", path="sample_track_a.jsonl"):
        find_files(tmp_path, "sample")


@pytest.mark.parametrize(
    ("words", "code", "values"),
    [
        (["hist"], "no_tables", {"system": "hist", "near": "hits"}),
        (["hits", "--table", "3"], "unknown_table", {"number": "3", "system": "hits"}),
        (["hits", "--table", "figure 1"], "table_not_computed", {"number": "figure 1"}),
        (["hits", "--seeds", "0"], "at_least", {"option": "seeds", "found": 0}),
        (["hits", "--labels-b", "none.jsonl"], "no_file_of_option", {"option": "labels_b", "path": "none.jsonl"}),
        (["hits"], "no_official_file", {"path": "narrative-similarity-dataset/dev/dev_track_a.jsonl"}),
        ([], "no_system", {}),
    ],
)
def test_mistakes_are_one_line(narrlit, words, code, values):
    found = narrlit("reproduce", *words)
    assert found.code == 2
    assert_refusal(found.error, code, **values)
    assert len(found.err.splitlines()) == 1


def test_an_option_that_no_row_can_take_is_refused(reproduction):
    with refused("options_need_fits", argument="--label"):
        reproduction(options=[{"label": "x"}])


def test_notes_say_what_is_missing(reproduction, folder):
    shutil.rmtree(folder / "test/labels")
    result = result_of(reproduction())

    assert result.figures["reason"].tolist()[1:] == ["labels not given", "not run", "not run"]
    assert [note.code for note in result.notes] == [
        "paper_table",
        "not_run",
        "absent_encoders",
        "absent_labels",
        "to_published",
    ]
    assert result.notes[1].values == {"reason": "sentence-transformers/all-MiniLM-L12-v2 is not available"}


def test_the_papers_encoder_is_needed_before_anything_runs(narrlit, folder):
    found = narrlit("reproduce", "comhis", "--data", folder)
    assert found.code == 2
    assert_refusal(found.error, "paper_encoder_not_available", model="Qwen/Qwen3-Embedding-8B")
    assert "give --backbone minilm" in found.err
    assert not Path("runs").exists()


def test_the_list_is_printed(narrlit):
    assert narrlit("reproduce", "--list").out == list_tables(SYSTEMS)
    assert narrlit("reproduce", "hits", "--list").out == list_tables(["hits"])


@pytest.mark.long
def test_a_table_end_to_end(narrlit, folder, tiny, llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", llm.url)
    monkeypatch.setenv("NARRLIT_LLM_MODEL", "tiny")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    words = ["reproduce", *f"comhis --table 1 --backbone {tiny()} --data {folder} --out out --seeds 2".split()]
    options = ["--trainer.max_epochs", 1, "--config", "configs/hardware/cpu.yaml"]
    found = narrlit(*words, *options)

    assert found.code == 0, found.err

    result = Result.read("out/comhis/reproduce.json")
    rows = {(row["system"], row["subset"]): row for row in result.figures.to_dict("records")}
    for column in ("dev A", "dev B", "test A", "test B"):
        assert rows["full system", f"comhis, table 1: {column}"]["deviation"] >= 0
    assert rows["full system", "comhis, table 1: dev B"]["reason"] == "trained on validation: no result"
    assert rows["baseline", "comhis, table 1: dev A"]["reason"] == "not run"
    codes = {note.code: note.values for note in result.notes}
    assert codes["not_run"]["reason"].startswith("the paper does not say which baseline")
    assert Note("stand_in", {"name": "encoder", "text": ["model for Qwen3-Embedding-8B"]}) in result.notes
    assert codes["fit_options"]["options"].startswith("--trainer.max_epochs 1")

    record = json.loads(Path("out/comhis/record.json").read_text())
    assert record["cells"]["1 | full system | test B"]["n"] == 5
    assert [one["system"] for one in record["cells"]["1 | full system | test B"]["seeds"]] == [
        "out/comhis/full-seed42",
        "out/comhis/full-seed43",
    ]

    # Dev cells are read from the run's record; the run's best checkpoint has the same accuracy.
    again = narrlit(
        "evaluate",
        "--long",
        "truncate",
        folder / "dev/dev_track_a.jsonl",
        "--model",
        "out/comhis/full-seed42",
        "--json",
    )

    assert (
        json.loads(again.out)["figures"][0]["value"]
        == record["cells"]["1 | full system | dev B"]["seeds"][0]["accuracy"]
    )
    assert {path.suffix for path in Path("out/comhis").glob("reproduce.*")} >= {".md", ".csv", ".json", ".tex"}

    again = narrlit(*words, *options)
    assert again.out == found.out
    assert "full-seed43, fit 1 of 1: full" in found.err
    assert "full-seed43, fit" not in again.err
