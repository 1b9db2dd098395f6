"""Model cards: README.md of an exported folder, with the metadata that a hub reads."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from narrlit import __version__
from narrlit.exporting.backends import Backend, BackendFile
from narrlit.exporting.origin import STORYWORLD, TAG, Origin, file_name, is_hub_id
from narrlit.markdown import code, escaped, literal
from narrlit.models.config import UNLIMITED
from narrlit.models.run_file import HIGHEST_ACCURACY, DataPart, Evaluation, RunFile
from narrlit.statistics.evaluations import accuracy_text, estimate_of

NARRLIT_CITATION = f"""```bibtex
@software{{narrlit,
  title = {{narrlit: embeddings of stories by theme, course of action and outcome}},
  author = {{{{The narrlit developers}}}},
  version = {{{__version__}}},
  url = {{https://github.com/narrlit/narrlit}},
  license = {{Apache-2.0}}
}}
```"""
"""Citation of the software, as in CITATION.cff."""
TASK_CITATION = (
    "Hatzel, Artemova, Stiemer, Gius and Biemann, *SemEval-2026 Task 4: Narrative Story Similarity and Narrative "
    "Representation Learning*, SemEval 2026, pages 3460 to 3478, "
    "[aclanthology.org/2026.semeval-1.429](https://aclanthology.org/2026.semeval-1.429/)"
)
"""Citation of the shared task, as in CITATION.cff."""
_COMHIS = "Shu, Mäkelä and Tolonen, *Comhis at SemEval-2026 Task 4*"
_HITS = "Zhou, Fan, Liu and Strube, *Team HITS at SemEval-2026 Task 4*"
_MENDEL = "Rijal, Gruppi and DeBenedetto, *Mendel292 at SemEval-2026 Task 4*"
_NLP_FSDM = "Benlahbib, Essalmani, Boumhidi, Fahfouh and Alami, *NLP-FSDM at SemEval-2026 Task 4*"
_TTDA = "Tan and Thien, *ttda704 at SemEval-2026 Task 4*, [arXiv:2606.15783](https://arxiv.org/abs/2606.15783)"
PAPERS = {
    "AspectBiLSTM": _MENDEL,
    "MLPHead": _MENDEL,
    "MultiView": _TTDA,
    "MultipleNegativesRanking": _NLP_FSDM,
    "Projection": _COMHIS,
    "SelfDistillation": _HITS,
    "Triplet": _TTDA,
}
"""Papers of the objectives of systems, as on the pages of the systems in the documentation."""

TASK_TYPE = "sentence-similarity"
TRAINED = "Trained so that stories of similar theme, course of action and outcome get similar embeddings."
UNTRAINED = "A text encoder, not trained on stories by narrlit: it compares texts, not plots."
USE = """## Use

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer({name}{consent})
embeddings = model.encode([{stories}])
print(embeddings.shape)
print(model.similarity(embeddings, embeddings))
```

The shape is `(2, {dimension})`. sentence-transformers truncates longer texts; narrlit embeds them in windows and
averages the embeddings.
"""
CODE = """
sentence-transformers has no module for this; the Python files in this folder implement it, and run only with
`trust_remote_code=True`.
"""
NOTES = {
    "text": "",
    "sentences": f"""
A story is encoded as the sequence of its sentences: the model in the folder `inner` embeds each sentence, and a
BiLSTM reads the sequence of embeddings.{CODE}""",
    "views": f"""
The model in the folder `inner` embeds the text of a story and its views (theme, course of action and outcome); their
weighted sum, with the weights in `views.json`, is the embedding of the story. The views follow the text, each after a
line with its name:

```python
model.encode("A knight seeks the grail.\\n[theme]\\nDevotion.\\n[action]\\nHe rides out.\\n[outcome]\\nHe dies.")
```
{CODE}""",
}
ONE_LENGTH = """
Padding changes the embeddings of this architecture: encode with `batch_size=1`, as narrlit does for texts of one
length, or the embedding of a text depends on the other texts.
"""
POSTPROCESSED = """
Embeddings are post-processed: `{steps}`, fitted on {stories} stories{files}. An evaluation on any of these stories is
transductive.
"""
TRUNCATED = """
Embeddings are truncated: they are the first {dimension} dimensions, normalized.
"""
BACKEND = """
The folder also has files for the backend `{backend}` of sentence-transformers. The last column is the largest change of
a cosine of two tales, compared with torch in float32:

| file | weights | cosines change by at most |
|---|---|--:|
{rows}

```python
model = SentenceTransformer({name}, backend="{backend}"{options})
```
"""
OPENVINO_PRECISION = """
By default, OpenVINO computes in bfloat16 where the processor does, which changes cosines by about 3e-3.
"""
FLAGS = {
    "trained_on_validation": "Validation triples or their stories were in the training data. The validation accuracy "
    "is no result, and is left out.",
    "mined_validation": "Hard examples of the training were taken from validation triples. The validation accuracy "
    "may be too high.",
    "transductive": "Stories of the evaluation were used in training, without their labels. The validation accuracy "
    "may be too high.",
}
"""Meaning of the flags of a run."""
PURPOSE_TRAINED = """- **Meant for** comparing, searching and grouping stories by what happens in them.
- **Not meant for** questions of fact, texts that are no stories, and languages that neither the base model nor the
  training covers.
"""
PURPOSE_UNTRAINED = """- **Meant for** comparing texts by their words and topics, such as a baseline.
- **Not meant for** finding stories that share a plot but no words.
"""
NOT_MEASURED = """
This was not measured for this model: `narrlit profile` measures it, and `narrlit export --profile` puts the result
here.
"""


@dataclass(frozen=True)
class CardFacts:
    """Facts that a card states.

    Attributes:
        name: name of the model.
        origin: recorded facts about base model, training and accuracy.
        reads: what the model reads: `text`, `sentences` or `views`.
        unit: name of the unit that `max_length` limits.
        dimension: dimension of the embeddings.
        max_length: maximum length of a unit in tokens.
        postprocess: steps of the post-processing, and the stories on which they were fitted; None: none.
        strengths: strengths and weaknesses in Markdown; None: not measured.
        mixes_padding: padding changes the embeddings.
        backend: backend of sentence-transformers for which the folder has files; None: torch alone.
        backend_files: these files.
    """

    name: str
    origin: Origin
    reads: str
    unit: str
    dimension: int
    max_length: int
    postprocess: Mapping[str, Any] | None = None
    strengths: str | None = None
    mixes_padding: bool = False
    backend: Backend | None = None
    backend_files: Sequence[BackendFile] = ()

    @property
    def result(self) -> Evaluation | None:
        """Evaluation that is a result; None if there is none, or the model was trained on these triples."""
        run, evaluation = self.origin.run, self.origin.evaluation
        if run is None or evaluation is None or evaluation.accuracy is None or run.flags.trained_on_validation:
            return None
        return evaluation


def model_card(facts: CardFacts) -> ModelCard:
    """Write the card of a model; facts that are not recorded are left out."""
    sections = [
        f"# {escaped(facts.name)}\n",
        _introduction(facts),
        _use(facts),
        _accuracy(facts),
        _training(facts.origin),
        _purpose(facts),
        _license(facts.origin),
        _citation(facts.origin),
    ]
    body = "\n".join(filter(None, sections))
    return ModelCard(f"---\n{card_metadata(facts).to_yaml()}\n---\n\n{body}")


def card_metadata(facts: CardFacts) -> ModelCardData:
    """Collect the metadata of a card."""
    origin = facts.origin
    tags = ["sentence-transformers", TASK_TYPE, "narrlit"]
    if origin.trained:
        tags.append(TAG)
    result = facts.result
    datasets = [name for name in origin.training_data if name != STORYWORLD and is_hub_id(name)]
    license = origin.license or {}
    return ModelCardData(
        base_model=_one_or_list(origin.base_model),
        datasets=datasets or None,
        eval_results=None if result is None else [_eval_result(result, origin)],
        language=_one_or_list(origin.language),
        library_name="sentence-transformers",
        metrics=None if result is None else ["accuracy"],
        model_name=None if result is None else facts.name,
        pipeline_tag=TASK_TYPE,
        tags=tags,
        license=license.get("license"),
        license_name=license.get("license_name"),
        license_link=license.get("license_link"),
    )


def _one_or_list(values: tuple[str, ...]) -> str | list[str] | None:
    """Return a single value as itself, several as a list, and None without a value."""
    if not values:
        return None
    return values[0] if len(values) == 1 else list(values)


def _eval_result(result: Evaluation, origin: Origin) -> EvalResult:
    """Describe an accuracy for the model index; its name has n, the interval and the flags."""
    data = ", ".join(origin.validation_data) or "validation triples"
    accuracy = estimate_of(result)
    flags = [] if origin.run is None else origin.run.flags.names
    details = [f"n = {accuracy.n} triples", f"95 % interval {accuracy.low:.3f} to {accuracy.high:.3f}", *flags]
    return EvalResult(
        task_type=TASK_TYPE,
        task_name="Narrative similarity of triples",
        dataset_type=data,
        dataset_name=data,
        dataset_split="validation",
        metric_type="accuracy",
        metric_name=f"Accuracy ({'; '.join(details)})",
        metric_value=round(accuracy.value, 4),
    )


def _introduction(facts: CardFacts) -> str:
    """Describe what the model is, and what it reads and gives."""
    claim = TRAINED if facts.origin.trained else UNTRAINED
    limit = "any number of" if facts.max_length == UNLIMITED else f"at most {facts.max_length}"
    return (
        f"{claim} Exported by narrlit {__version__}; dimension {facts.dimension}, {limit} tokens of a {facts.unit}.\n"
    )


def _use(facts: CardFacts) -> str:
    """Show an example with the shape of its output, the form of the input, and the post-processing."""
    text = USE.format(
        name=literal(facts.name),
        consent="" if facts.reads == "text" else ", trust_remote_code=True",
        stories="first, second" if facts.reads == "views" else '"A story.", "Another story."',
        dimension=facts.dimension,
    )
    if facts.mixes_padding:
        text += ONE_LENGTH
    if facts.backend is not None:
        text += _backend(facts.name, facts.backend, facts.backend_files)
    text += NOTES[facts.reads]
    if facts.postprocess is not None and "fit_on" not in facts.postprocess:
        text += TRUNCATED.format(dimension=facts.dimension)
    elif facts.postprocess is not None:
        files = ""
        for file in facts.postprocess["fit_on"]:
            files += f", {code(file_name(file['path']))} (SHA-256 {file['sha256']})"
        text += POSTPROCESSED.format(
            steps=facts.postprocess["steps"], stories=facts.postprocess["stories"], files=files
        )
    return text


def _backend(name: str, backend: Backend, files: Sequence[BackendFile]) -> str:
    """List the files of a backend, and show how the last one is loaded."""
    rows = []
    for file in files:
        rows.append(f"| {code(file.path)} | {file.weights} | {file.largest_change:.0e} |")
    options: dict[str, object] = {}
    if len(files) > 1:
        options["file_name"] = files[-1].path
    if backend == "openvino":
        options["ov_config"] = {"INFERENCE_PRECISION_HINT": "f32"}
    arguments = f", model_kwargs={json.dumps(options)}" if options else ""
    text = BACKEND.format(rows="\n".join(rows), name=literal(name), backend=backend, options=arguments)
    return text + OPENVINO_PRECISION if backend == "openvino" else text


def _accuracy(facts: CardFacts) -> str:
    """State the accuracy with its interval, and how often it was measured."""
    result, run = facts.result, facts.origin.run
    if result is None or run is None:
        return ""
    data = ", ".join(map(code, facts.origin.validation_data)) or "the validation triples"
    lines = ["## Accuracy", "", f"{accuracy_text(result)} on {data}. The interval is the 95 % confidence interval."]
    if run.reference is not None and run.reference.accuracy is not None:
        lines.append(f"Before training: {accuracy_text(run.reference)}.")
    count = run.num_evaluations
    if count is not None and count > 1:
        highest = max(evaluation.accuracy or 0 for evaluation in [result, *run.validations])
        if run.selected_by == "last":
            lines.append(f"It is the last of {count} evaluations on these triples.")
        elif run.selected_by != HIGHEST_ACCURACY:
            lines.append(f"It is one of {count} evaluations on these triples; the {run.selected_by} chose the weights.")
        elif result.accuracy == highest:
            lines.append(
                f"It is the best of {count} evaluations on these triples, which chose the weights, so it is somewhat "
                "too high."
            )
        else:
            lines.append(
                f"It is one of {count} evaluations on these triples, which chose the weights among those that were "
                "saved, so it is somewhat too high."
            )
    return "\n".join([*lines, ""])


def _training(origin: Origin) -> str:
    """List data and settings of the training, with the flags of the run."""
    facts = []
    if origin.base_model:
        facts.append(f"Base model: {', '.join(map(code, origin.base_model))}")
    if origin.average is not None:
        facts.append(f"Weights: {origin.average.what} (0: before training)")
    if origin.run is not None:
        facts += _settings(origin.run, origin.evaluation)
    if not facts:
        return ""
    lines = ["## Training" if origin.trained else "## Origin", ""]
    lines += [f"- {fact}" for fact in facts]
    for flag in [] if origin.run is None else origin.run.flags.names:
        lines.append(f"- Flag `{flag}`: {FLAGS[flag]}")
    return "\n".join([*lines, ""])


def _dimensions(dimensions: Sequence[int] | None) -> str | None:
    """List the dimensions for which a model was trained; None: only that of whole embeddings."""
    if dimensions is None:
        return None
    listed = ", ".join(map(str, dimensions))
    return f"trained for {listed} dimensions, of which `truncate_dim=` of SentenceTransformer chooses"


def _settings(run: RunFile, evaluation: Evaluation | None) -> list[str]:
    """List the recorded settings of a run."""
    train = run.data_of("train")
    settings = {
        "Objective": _code_or_none(run.model.objective),
        "Matryoshka": _dimensions(run.model.dimensions),
        "Training data": _data(train),
        "Epochs": _epochs(run, evaluation),
        "Batch size": run.loading.batch_size,
        "Batches per step": run.trainer.accumulate_grad_batches,
        "Learning rate": run.model.optimization.learning_rate,
        "Precision": _code_or_none(run.trainer.precision),
        "Seed": run.seed,
    }
    lines = []
    for name, value in settings.items():
        if value is not None:
            lines.append(f"{name}: {value}")
    if train.pseudonyms is not None and train.pseudonyms.backend != "none":
        lines.append(
            f"Names: replaced by placeholders (scope {escaped(train.pseudonyms.scope)}). Replace them in your stories, "
            "too, with `narrlit data pseudonymize`."
        )
    if run.versions:
        versions = [f"{escaped(name)} {escaped(version)}" for name, version in run.versions.items()]
        lines.append(f"Versions: {', '.join(versions)}")
    return lines


def _code_or_none(name: str | None) -> str | None:
    """Write a name as code; None remains None."""
    return None if name is None else code(name)


def _data(data: DataPart) -> str | None:
    """Name data files with their rows, and synthetic triples with their number; None if none are recorded."""
    parts = []
    for file in data.files:
        rows = "" if file.rows is None else f" ({file.rows:,} rows)"
        parts.append(f"{code(file_name(file.path))}{rows}")
    if data.storyworld is not None:
        parts.append(f"{STORYWORLD} ({data.storyworld.triples:,} synthetic triples)")
    return ", ".join(parts) or None


def _epochs(run: RunFile, evaluation: Evaluation | None) -> str | None:
    """Name the epoch of the weights, if it is known, and the number of epochs; None if it is not recorded."""
    epochs = run.trainer.max_epochs
    if epochs is None or epochs < 0:
        return None
    if evaluation is None or evaluation.epoch is None:
        return str(epochs)
    return f"{epochs}; these weights are of epoch {evaluation.epoch + 1}"


def _purpose(facts: CardFacts) -> str:
    """State what the model is good for: measured, or in general."""
    title = "## Good for, and not good for\n\n"
    if facts.strengths is not None:
        return f"{title}{facts.strengths}\n"
    return title + (PURPOSE_TRAINED if facts.origin.trained else PURPOSE_UNTRAINED) + NOT_MEASURED


def _license(origin: Origin) -> str:
    """State the license, or that it is not known."""
    if origin.license is None:
        return "## License\n\nNot recorded: add `license` to the metadata above before you publish the model.\n"
    text = f"## License\n\n{code(origin.license['license'])}, as in the card of the model that was exported or trained."
    return f"{text} Training data may have terms of their own.\n" if origin.run is not None else f"{text}\n"


def _citation(origin: Origin) -> str:
    """List what to cite."""
    lines = ["## Citation", "", NARRLIT_CITATION, ""]
    objective = None if origin.run is None else origin.run.model.objective
    if objective in PAPERS:
        lines.append(f"- The objective: {PAPERS[objective]}.")
    lines.append(f"- The shared task: {TASK_CITATION}.")
    return "\n".join([*lines, ""])
