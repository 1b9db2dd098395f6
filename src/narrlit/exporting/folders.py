"""Export to sentence-transformers folders that load without this package, and averaging of weights."""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from narrlit import __version__
from narrlit.data.readers import read_stories
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import ModelError, OptionError
from narrlit.files import atomic_folder, check_writable
from narrlit.models.averaging import average_weights
from narrlit.models.checkpoints import find_checkpoint
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.registry import open_encoder
from narrlit.models.weights import CONFIG, save_encoder

CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, narrative-similarity]
---
# A story encoder

{claim} Exported by narrlit {version} from `{source}`; dimension {dimension}, at most {max_length} tokens of
a {unit}.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{folder}"{consent})
embeddings = model.encode([{stories}])
print(model.similarity(embeddings, embeddings))
```

sentence-transformers truncates longer texts; narrlit embeds them in windows and averages the embeddings.
"""
TRAINED = "Trained so that stories of similar theme, course of action and outcome get similar embeddings."
UNTRAINED = "A general text encoder, not trained on stories: similar embeddings mean similar texts, not similar plots."
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
POSTPROCESSED = """
Embeddings are post-processed: `{steps}`, fitted on {stories} stories{files}. An evaluation on any of these stories is
transductive.
"""


LARGEST_DIFFERENCE = 1e-5
"""Maximum difference of two float32 embeddings that differ only in the order of summation."""


@dataclass(frozen=True)
class ExportedModel:
    """Sentence-transformers folder written by `export`.

    Attributes:
        path: the folder.
        dimension: dimension D of its embeddings.
        max_length: maximum length of a text in tokens.
    """

    path: Path
    dimension: int
    max_length: int

    def __str__(self) -> str:
        """Format folder, dimension and maximum length as one line."""
        return f"{self.path}: {self.dimension} dimensions, {self.max_length} tokens at most"


def export(model: str | PathLike[str] | StoryEncoder, out: str | Path) -> ExportedModel:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings.

    Args:
        model: a run (its best checkpoint), a checkpoint, a model folder, a hub id, `narrlit-mini` or `minilm`; or an
            encoder from `narrlit.load`, with its fusion and post-processing. It is not changed.
        out: folder to write; must be new or empty.

    Returns:
        An `ExportedModel`: `.path`, `.dimension`, `.max_length`.

    Raises:
        ModelError: if the model can't be loaded.
        OptionError: if the folder is not empty, or the model reads both views and sentences.

    >>> print(export("minilm", getfixture("tmp_path") / "model").dimension)
    384
    """
    check_writable(out, folder=True)
    encoder = copy.deepcopy(model) if isinstance(model, StoryEncoder) else load(model, device="cpu")
    encoder = encoder.fitted_for([])
    module = encoder.with_postprocessing_inside().to("cpu")
    trained = find_checkpoint(encoder.name) is not None or (Path(encoder.name) / CONFIG).is_file()
    postprocess = encoder.about.get("postprocess")
    write_model_folder(module, Path(out), encoder.name, trained=trained, postprocess=postprocess)
    return ExportedModel(Path(out), module.dimension, module.max_length)


def check_export(folder: str | Path, stories: str | Path) -> float:
    """Compare the embeddings of sentence-transformers and narrlit for an exported folder.

    Args:
        folder: folder of the exported model, which gives float32 unit vectors.
        stories: file of stories, as `narrlit.read_stories` reads it.

    Returns:
        The largest absolute difference between components of the embeddings.

    Raises:
        ModelError: if the difference is above 1e-5.
    """
    texts = [story.text for story in read_stories(stories)]
    exported = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts)
    embeddings = load(folder, device="cpu").embed(texts)
    difference = float(np.abs(exported - embeddings).max())
    if not difference <= LARGEST_DIFFERENCE:  # or NaN
        raise ModelError(f"{folder}: narrlit and sentence-transformers differ by {difference:.1e}")
    return difference


@dataclass(frozen=True)
class AveragedModel:
    """Folder with the averaged weights of several training runs, which loads as a model.

    Attributes:
        path: the folder.
        models: models that were averaged.
        trained_share: interpolation between the weights before training (0) and the mean of the trained weights (1).
        config: configuration of the encoder.
    """

    path: Path
    models: tuple[str, ...]
    trained_share: float
    config: EncoderConfig

    def __str__(self) -> str:
        """Format folder, number of models and trained share as one line."""
        adapter = f", adapters of rank {self.config.lora.rank}" if self.config.lora else ""
        return f"{self.path}: mean of {len(self.models)}, trained share {self.trained_share:g}{adapter}"


def average(
    models: Sequence[str | PathLike[str]],
    out: str | Path,
    *,
    trained_share: float = 1.0,
    trust_remote_code: bool = False,
) -> AveragedModel:
    """Average the weights of several training runs of one encoder, such as the seeds of a config, into a folder.

    A trained share below 1 often preserves abilities of the pretrained encoder at no cost. The folder loads as a model,
    and `narrlit.export` converts it to a sentence-transformers folder.

    Args:
        models: runs (their best checkpoints) or checkpoints; a single one is interpolated with the weights before
            training.
        out: folder to write; must be new or empty.
        trained_share: interpolation between the weights before training (0) and the mean of the trained weights (1).
        trust_remote_code: run Python files that come with the model.

    Returns:
        An `AveragedModel`: `.path`, `.config`.

    Raises:
        ModelError: if a model can't be loaded.
        OptionError: if the models were trained from different encoders, or are heads on a frozen encoder; if the share
            is not between 0 and 1, or the folder is not empty.

    Source: Wortsman et al. 2022, Model soups, and Robust fine-tuning of zero-shot models.
    """
    if not models:
        raise OptionError("`models`: name at least one")
    check_writable(out, folder=True)
    names = tuple(str(model) for model in models)
    encoders = [open_encoder(name, trust_remote_code=trust_remote_code) for name in names]
    config, weights = average_weights(encoders, trained_share)
    if config.lora is not None:  # halves the file size; embeddings change by less than 1e-3
        weights = {name: value.half() for name, value in weights.items()}
    with atomic_folder(Path(out)) as temporary:
        save_encoder(temporary, config, weights)
        record = {"models": names, "trained_share": trained_share}
        (temporary / "average.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return AveragedModel(Path(out), names, trained_share, config)


def write_model_folder(
    encoder: Encoder, folder: Path, source: str, *, trained: bool, postprocess: dict[str, Any] | None = None
) -> None:
    """Write an encoder as a sentence-transformers folder with a model card, atomically.

    Adapters are merged and weights dequantized first, in `encoder` itself.

    Args:
        encoder: encoder to export.
        folder: folder to write; must be new or empty.
        source: name of the encoder, for the card.
        trained: the encoder was trained on stories, which the card states.
        postprocess: steps and stories of the encoder's post-processing, for the card.

    Raises:
        OptionError: if the folder is not empty, or the encoder reads both views and sentences.
    """
    card = _model_card(encoder, folder.name, source, trained, postprocess)
    encoder.merge()
    with atomic_folder(folder) as temporary:
        encoder.save(temporary)
        (temporary / "README.md").write_text(card, encoding="utf-8")


def _model_card(encoder: Encoder, folder: str, source: str, trained: bool, postprocess: dict[str, Any] | None) -> str:
    """Write the model card: origin, example of use, form of the input, and post-processing."""
    has_code = encoder.reads != "text"
    card = CARD.format(
        claim=TRAINED if trained else UNTRAINED,
        version=__version__,
        source=source,
        dimension=encoder.dimension,
        max_length=encoder.max_length,
        unit=encoder.unit[0],
        folder=folder,
        consent=", trust_remote_code=True" if has_code else "",
        stories="first, second" if encoder.reads == "views" else '"A story.", "Another story."',
    )
    card += NOTES[encoder.reads]
    if postprocess is not None:
        files = ""
        for file in postprocess["fit_on"]:
            files += f", `{file['path']}` (SHA-256 {file['sha256']})"
        card += POSTPROCESSED.format(steps=postprocess["steps"], stories=postprocess["stories"], files=files)
    return card
