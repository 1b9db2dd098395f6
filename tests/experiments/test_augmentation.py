"""Back-translations of training examples in memory, without the command line."""

import pytest
from refusals import refused
from tiny_translators import short_texts, tiny_marian

from narrlit.data.readers import read_examples
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.experiments.augmentation import back_translate_examples
from narrlit.experiments.options import Quality
from narrlit.preprocessing.pivots import Pivots


@pytest.fixture
def augment(tmp_path):
    """augment(**options): six examples through French and back, by tiny random models."""
    for seed, name in enumerate(("en-fr", "fr-en")):
        tiny_marian(tmp_path / name, seed=seed, ends=8.0)
    pivots = Pivots("fr", str(tmp_path / "en-{pivot}"), str(tmp_path / "{pivot}-en"), beams=2)
    indices = zip(*[iter(range(18))] * 3, strict=True)
    rows = [TrainingExample(a, p, (n,), ("triple",)) for a, p, n in indices]
    examples = TrainingExamples(StoryTable.of([f"{text}." for text in short_texts(18)]), rows)

    def run(score="none", **options):
        quality = Quality(score)
        log = tmp_path / "log.jsonl"
        return examples, back_translate_examples(
            examples, log=log, pivots=pivots, quality=quality, device="cpu", **options
        )

    return run


def test_every_example_and_version_is_counted_and_written(augment, tmp_path):
    examples, result = augment(mixed=True)
    pivot = result.pivots["fr"]
    assert pivot.versions + pivot.left_out.total() == 3 * len(examples)
    assert result.num_examples == len(examples)
    assert result.num_versions == pivot.versions
    assert result.num_versions > 0

    result.write(tmp_path / "b.jsonl")
    written = read_examples(tmp_path / "b.jsonl")
    assert written.texts() == result.examples.texts()
    assert len({example.group for example in written}) == len(examples)
    assert result.table()["versions"].tolist() == [pivot.versions]
    with refused("no_bertscore"):
        result.plot()


def test_scores_are_of_the_replaced_stories(augment, tiny, tmp_path):
    _, result = augment(score=tiny())
    pivot = result.pivots["fr"]
    assert len(pivot.scores.f1) == len(pivot.replaced) > 0
    assert result.record["pivots"]["fr"]["f1"]["mean"] == pytest.approx(pivot.scores.f1.mean())
    assert result.plot().get_ylabel() == "BERTScore F1"

    result.write_report(tmp_path / "report")
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"report.json", "report.md", "bertscore.svg"}
    with refused("bertscore_layer_alone", layer=2):
        Quality("none", 2)
