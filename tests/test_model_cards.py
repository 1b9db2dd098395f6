"""Model cards: metadata that a hub reads, what is recorded and nothing else, and no path of the machine."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData, metadata_load
from refusals import refused

import narrlit as library
from narrlit import objectives
from narrlit.exporting.card import FLAGS, NARRLIT_CITATION, PAPERS, TASK_CITATION, CardFacts, card_metadata, model_card
from narrlit.exporting.origin import MINILM, AverageFile, Origin
from narrlit.models.run_file import RunFile, RunFlags
from narrlit.results import Estimate, Result

RECORD = {
    "version": 1,
    "status": "finished",
    "seed": 42,
    "command": {"line": "narrlit fit --data.train /home/ann/secret/train.jsonl"},
    "versions": {"python": "3.11.7", "narrlit": "0.1.0"},
    "model": {
        "objective": "Triplet",
        "encoder": {"model": "minilm"},
        "optimization": {"learning_rate": 2e-05},
    },
    "trainer": {"max_epochs": 5, "accumulate_grad_batches": 2, "precision": "bf16-mixed"},
    "loading": {"batch_size": 16},
    "data": {
        "train": {
            "files": [{"path": "/home/ann/secret/train.jsonl", "sha256": "a1", "rows": 1830}],
            "pseudonyms": {"backend": "spacy", "scope": "triple"},
        },
        "validation": {"files": [{"path": "C:\\ann\\dev.jsonl", "sha256": "b2", "rows": 200}]},
    },
    "checkpoints": {"best": "checkpoints/best.ckpt", "last": "checkpoints/last.ckpt"},
    "num_evaluations": 5,
    "untrained": {"n": 200, "correct": 100, "accuracy": 0.5, "interval": [0.43, 0.57]},
    "best": {"n": 200, "correct": 126, "accuracy": 0.63, "interval": [0.561, 0.694], "epoch": 2, "step": 52},
}
PROFILE = [
    Estimate(0.22, 0.1, 0.3, 24).row("minilm", "share of similarity", "share: plot"),
    Estimate(0.1, -0.1, 0.3, 32).row("minilm", "fall of similarity", "fall: theme"),
    Estimate(0.4, 0.2, 0.6, 32).row("minilm", "fall of similarity", "fall: outcome"),
    Estimate(0.3, 0.2, 0.4, 36).row("minilm", subset="triples: far, strong"),
    Estimate(0.7, 0.6, 0.8, 36).row("minilm", subset="triples: far, weak"),
    Estimate(0.7, 0.6, 0.8, 36).row("minilm", subset="set: a story: text"),
]


@pytest.fixture
def run(tmp_path):
    """run(flag=True): the folder of a run with these flags; its checkpoints are empty files."""

    def write(**flags):
        folder = tmp_path / "run"
        (folder / "checkpoints").mkdir(parents=True)
        for name in ("best", "last"):
            (folder / "checkpoints" / f"{name}.ckpt").touch()
        (folder / "run.json").write_text(json.dumps({**RECORD, "flags": flags}))
        return folder

    return write


@pytest.fixture
def profile(tmp_path):
    settings = {"measure": "cosine", "split": "test", "plots": 12, "worlds": 2}
    Result.of("profile", PROFILE, settings=settings).write(tmp_path)
    return tmp_path / "profile.json"


def facts_of(origin, **changes):
    facts = CardFacts("ann/plots", origin, reads="text", unit="story", dimension=384, max_length=256)
    return replace(facts, **changes)


def card_of(run, **changes):
    return model_card(facts_of(Origin.of(str(run), "minilm"), **changes))


def test_the_metadata_of_a_run_load_back_as_they_were_written(run, tmp_path):
    facts = facts_of(Origin.of(str(run()), "minilm"))
    written = card_metadata(facts)
    model_card(facts).save(tmp_path / "README.md")
    loaded = ModelCardData(**metadata_load(tmp_path / "README.md"))

    assert loaded.to_dict() == written.to_dict()
    assert loaded.eval_results == written.eval_results

    (result,) = loaded.eval_results
    assert (result.metric_type, result.metric_value) == ("accuracy", 0.63)
    assert result.metric_name == "Accuracy (n = 200 triples; 95 % interval 0.561 to 0.694)"
    assert (result.dataset_name, result.dataset_split, loaded.model_name) == ("dev.jsonl", "validation", "ann/plots")
    assert (loaded.license, loaded.language, loaded.base_model) == ("apache-2.0", "en", MINILM)
    assert loaded.datasets == ["train.jsonl"]
    fields = loaded.to_dict()
    assert (fields["library_name"], fields["pipeline_tag"]) == ("sentence-transformers", "sentence-similarity")
    assert "narrative-similarity" in loaded.tags


def test_the_card_of_a_matryoshka_run_names_its_dimensions(run):
    folder = run()
    assert "truncate_dim" not in card_of(folder).text

    record = json.loads((folder / "run.json").read_text())
    record["model"]["dimensions"] = [384, 96]
    (folder / "run.json").write_text(json.dumps(record))
    assert "- Matryoshka: trained for 384, 96 dimensions, of which `truncate_dim=`" in card_of(folder).text


def test_the_card_of_truncated_embeddings_says_so(run):
    text = card_of(run(), dimension=96, postprocess={"steps": "truncate:96"}).text
    assert "they are the first 96 dimensions, normalized" in text


def test_the_card_of_a_run_states_how_it_was_trained(run):
    text = card_of(run()).text
    for line in (
        "0.630 [0.561, 0.694], n = 200 on `dev.jsonl`.",
        "Before training: 0.500 ",
        "the best of 5 evaluations",
        "- Objective: `Triplet`\n",
        "- Training data: `train.jsonl` (1,830 rows)\n",
        "- Epochs: 5; these weights are of epoch 3\n",
        "- Batch size: 16\n",
        "- Batches per step: 2\n",
        "- Learning rate: 2e-05\n",
        "- Precision: `bf16-mixed`\n",
        "- Seed: 42\n",
        "- Versions: python 3.11.7, narrlit 0.1.0\n",
        "with `narrlit data pseudonymize`",
        "The shape is `(2, 384)`.",
        "*ttda704 at SemEval-2026 Task 4*",
    ):
        assert line in text
    assert "Flag" not in text


def test_a_card_contains_no_path_and_no_command_line(run):
    folder = run()
    card = str(card_of(folder))
    for private in (str(folder), "/home", "secret", "C:\\", "narrlit fit"):
        assert private not in card


def test_every_flag_has_its_sentence(run):
    assert FLAGS.keys() == RunFlags.model_fields.keys()

    text = card_of(run(mined_validation=True, transductive=True)).text
    for flag in ("mined_validation", "transductive"):
        assert f"- Flag `{flag}`: {FLAGS[flag]}\n" in text


def test_flags_stand_beside_the_accuracy_in_the_metadata(run):
    (result,) = card_of(run(transductive=True)).data.eval_results
    assert result.metric_name.endswith("; transductive)")


def test_an_accuracy_on_triples_that_were_trained_on_is_no_result(run):
    card = card_of(run(trained_on_validation=True))
    assert card.data.eval_results is None
    assert "0.630" not in str(card)
    assert "The validation accuracy is no result" in card.text


def test_only_the_best_checkpoint_has_the_accuracy_of_the_best_epoch(run):
    folder = run()
    for name, accuracy in (("best", 0.63), ("last", None)):
        evaluation = Origin.of(str(folder / "checkpoints" / f"{name}.ckpt"), "minilm").evaluation
        assert (evaluation and evaluation.accuracy) == accuracy


def test_nothing_is_stated_that_is_not_recorded(tiny):
    card = model_card(facts_of(Origin.of(tiny(), tiny())))
    assert card.data.to_dict().keys() == {"library_name", "pipeline_tag", "tags"}
    assert "narrative-similarity" not in card.data.tags
    assert "add `license` to the metadata" in card.text
    for section in ("## Accuracy", "## Training", "None"):
        assert section not in card.text


@pytest.mark.parametrize(
    ("head", "license_"),
    [
        ("license: mit\nlanguage: [en, de]\nbase_model: ann/base", "mit"),
        ("license: other\nlicense_name: own\nlicense_link: LICENSE", "other"),
        ("license: [", None),
        ("- a list", None),
    ],
)
def test_license_and_language_come_from_the_card_of_the_model(make, tmp_path, head, license_):
    make("README.md", f"---\n{head}\n---\n# A model\n")
    data = card_metadata(facts_of(Origin.of(str(tmp_path), str(tmp_path)))).to_dict()

    assert data.get("license") == license_
    assert data.get("license_name") == ("own" if license_ == "other" else None)
    assert data.get("language") == (["en", "de"] if license_ == "mit" else None)
    assert data.get("base_model") == ("ann/base" if license_ == "mit" else None)


@pytest.mark.parametrize(
    ("head", "language", "base_model"),
    [
        ("language: no", "no", None),  # False in YAML
        ("language: [en-GB, zh-Hans, pt_BR, eng_Latn, en]", ["en", "zh", "pt", "eng"], None),
        ("language: [English, '']", None, None),
        ("language: multilingual\nbase_model: /data/base", "multilingual", None),
        ("base_model: [ann/base, ../base, C:\\base, a b]", None, "ann/base"),
    ],
)
def test_metadata_are_those_that_a_hub_accepts(make, tmp_path, head, language, base_model):
    make("README.md", f"---\n{head}\n---\n# A model\n")
    data = card_metadata(facts_of(Origin.of(str(tmp_path), str(tmp_path)))).to_dict()

    assert data.get("language") == language
    assert data.get("base_model") == base_model


def test_a_folder_of_this_machine_is_no_base_model(tiny, tmp_path, monkeypatch):
    folder = Path(tiny())
    monkeypatch.chdir(folder.parent.parent)
    name = str(folder.relative_to(folder.parent.parent))  # as a hub id: OWNER/NAME
    (tmp_path / "README.md").write_text(f"---\nbase_model: {name}\n---\n", encoding="utf-8")

    assert name.count("/") == 1
    assert Origin.of(str(tmp_path), str(tmp_path)).base_model == ()


def test_a_model_of_the_hub_is_its_own_base_model():
    assert Origin.of("ann/model", "ann/model").base_model == ("ann/model",)


def test_narrlit_mini_keeps_its_own_license():
    origin = Origin.of("narrlit-mini", "minilm")
    assert origin.trained
    assert origin.license == {"license": "cc-by-sa-4.0"}
    assert origin.base_model == (MINILM,)
    assert "sum of 4, trained shares 0.1667, 0.1667, 0.1667, 0.75" in model_card(facts_of(origin)).text


def test_an_exported_model_remains_a_trained_one(run, tmp_path):
    card_of(run()).save(tmp_path / "exported" / "README.md")
    again = Origin.of(str(tmp_path / "exported"), str(tmp_path / "exported"))
    assert again.trained
    assert again.license == {"license": "apache-2.0"}
    assert again.base_model == (MINILM,)


HOSTILE = 'a: "b"\n---\n# c | `d` *e* [f](g) <script> {h}'


def test_names_are_escaped_in_yaml_and_markdown():
    record = json.loads(json.dumps(RECORD))
    record["data"]["train"]["files"][0]["path"] = HOSTILE.replace("/", "")
    record["model"]["objective"] = HOSTILE
    origin = Origin(trained=True, run=RunFile.model_validate(record), average=AverageFile(models=[], trained_share=1.0))
    card = model_card(facts_of(origin, name=HOSTILE))
    again = ModelCard(str(card))

    assert again.data.to_dict() == card.data.to_dict()
    assert again.data.datasets is None  # a hub accepts no such name
    assert again.text.lstrip().startswith('# a: "b" --- \\# c \\| \\`d\\` \\*e\\* \\[f\\](g) \\<script\\> \\{h\\}\n')
    assert '- Objective: ``a: "b" --- # c | `d` *e* [f](g) <script> {h}``\n' in again.text

    (line,) = [line for line in again.text.splitlines() if "SentenceTransformer(" in line]
    assert compile(line, "card", "exec")


def test_a_profile_decides_what_a_model_is_good_for(profile, tmp_path):
    library.export("minilm", tmp_path / "model", profile=profile)
    text = ModelCard.load(tmp_path / "model" / "README.md").text
    section = text.partition("## Good for, and not good for\n")[2].partition("\n## ")[0]
    good, _, rest = section.partition("**Not good for**")
    bad, _, undecided = rest.partition("**Not decided")

    assert "the test part of Twice Told: 12 plots, each told in 2 worlds" in good
    assert "another plot in another world: accuracy 0.700 [0.600, 0.800], 36 triples" in good
    assert "only the outcome is changed: similarity falls by 0.400 [0.200, 0.600]" in good
    assert "over another plot in the world of the anchor: accuracy 0.300 [0.200, 0.400]" in bad
    assert "only the theme of a story is changed" in undecided
    assert "Similarity is made of: plot 22.0 % [10.0, 30.0]." in undecided
    assert "a story" not in section.replace("of a story is", "")


def test_a_profile_of_another_model_is_refused_before_anything_is_written(profile, narrlit, tmp_path):
    found = narrlit("export", "narrlit-mini", "--out", "model", "--profile", profile)
    assert found.code == 2
    assert "--profile: it has minilm, not narrlit-mini: run narrlit profile narrlit-mini --out FOLDER" in found.err
    assert not (tmp_path / "model").exists()


def test_a_damaged_profile_is_refused(make, tmp_path):
    Result.of("evaluate", PROFILE).write(tmp_path)
    damaged = make("profile.json", '{"models": []}')
    for path, code in ((damaged, "broken_result"), (tmp_path / "evaluate.json", "not_a_profile")):
        with refused(code, path=path):
            library.export("minilm", tmp_path / "model", profile=path)


def test_an_export_with_other_settings_has_no_accuracy_of_the_run(tiny):
    assert library.load(tiny()).is_as_trained
    for changed in ({"max_length": 64}, {"fusion": "equal"}, {"postprocess": "truncate:8"}):
        assert not library.load(tiny(), **changed).is_as_trained


def test_the_citations_are_those_of_the_project():
    citation = yaml.safe_load((Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8"))
    for field in ("title", "version", "repository-code", "license"):
        assert citation[field] in NARRLIT_CITATION
    (task,) = citation["references"]
    for field in ("title", "start", "end", "url"):
        assert task[field] in TASK_CITATION
    for author in task["authors"]:
        assert author["family-names"] in TASK_CITATION

    names = {
        name for name in objectives.__all__ if name not in ("Aspects", "Distillation", "Objective", "Optimization")
    }
    assert PAPERS.keys() == names - {"PassageMatching"}  # narrlit's own
