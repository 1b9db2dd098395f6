"""Export encoders as sentence-transformers folders that load without this package."""

from pathlib import Path
from typing import Any

from narrlit.files import atomic_folder
from narrlit.models.encoder import Encoder

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

sentence-transformers truncates what is longer; narrlit embeds it in windows and averages these.
"""
TRAINED = "Trained so that stories of similar theme, course of action and outcome get similar embeddings."
UNTRAINED = "A general text encoder, not trained on stories: similar embeddings mean similar text, by its own standard."
CODE = """
Nothing in sentence-transformers does that, so the Python files in this folder do, and run only with
`trust_remote_code=True`.
"""
NOTES = {
    "text": "",
    "sentences": f"""
A story is read as the sequence of its sentences: the model in the folder `inner` embeds each, and a BiLSTM reads these
embeddings.{CODE}""",
    "views": f"""
A story's embedding is fused from those of its text and of its views, theme, course of action and outcome, each embedded
by the model in the folder `inner`; `views.json` holds the weights. The views stand behind the text, each after a line
that names it:

```python
model.encode("A knight seeks the grail.\\n[theme]\\nDevotion.\\n[action]\\nHe rides out.\\n[outcome]\\nHe dies.")
```
{CODE}""",
}
POSTPROCESSED = """
Embeddings are post-processed: `{steps}`, fitted on {stories} stories{files}. An evaluation on any of these stories is
transductive.
"""


def export(
    encoder: Encoder, folder: Path, source: str, *, trained: bool, postprocess: dict[str, Any] | None = None
) -> None:
    """Write an encoder as a sentence-transformers folder with a model card, atomically.

    Adapters are merged and weights dequantized first, in `encoder` itself.

    Args:
        encoder: what to export.
        folder: folder that does not exist, or is empty.
        source: name of the encoder, for the card.
        trained: the encoder was trained on stories; the card says so.
        postprocess: provenance of the encoder's post-processing, for the card.

    Raises:
        OptionError: if the folder exists and is not empty, or the encoder reads both views and sentences.
    """
    from narrlit import __version__

    has_code = encoder.reads != "text"
    card = CARD.format(
        claim=TRAINED if trained else UNTRAINED,
        version=__version__,
        source=source,
        dimension=encoder.dimension,
        max_length=encoder.max_length,
        unit=encoder.unit[0],
        folder=folder.name,
        consent=", trust_remote_code=True" if has_code else "",
        stories="first, second" if encoder.reads == "views" else '"A story.", "Another story."',
    )
    card += NOTES[encoder.reads]
    if postprocess is not None:
        files = "".join(f", `{file['path']}` (SHA-256 {file['sha256']})" for file in postprocess["fit_on"])
        card += POSTPROCESSED.format(steps=postprocess["steps"], stories=postprocess["stories"], files=files)
    encoder.merge()
    with atomic_folder(folder) as temporary:
        encoder.save(temporary)
        (temporary / "README.md").write_text(card, encoding="utf-8")
