"""Trained encoders out: sentence-transformers folders that load without this package."""

from pathlib import Path

from narrlit.files import atomic_folder
from narrlit.models.sentence_encoder import SentenceEncoder
from narrlit.models.view_encoder import AnyEncoder, ViewEncoder

CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, narrative-similarity]
---
# A story encoder

Stories are near in it when their theme, course of action and outcome are alike. Exported by narrlit {version}
from `{source}`; {dimension} numbers a story, {max_length} tokens{unit} at most.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{folder}"{consent})
vectors = model.encode([{stories}])
print(model.similarity(vectors, vectors))
```
"""
SEQUENCES = """
A story is read as the sequence of its sentences: the model in the folder `inner` embeds each, and a BiLSTM reads their
vectors. Nothing in sentence-transformers does that, so the Python files in this folder do, and run only with
`trust_remote_code=True`.
"""


VIEWS = """
A story's vector is fused from those of its text and of its views, theme, course of action and outcome, each embedded
by the model in the folder `inner`; `views.json` holds the weights. The views stand behind the text, each after a line
that names it:

```python
model.encode("A knight seeks the grail.\\n[theme]\\nDevotion.\\n[plot]\\nHe rides out.\\n[outcome]\\nHe dies in peace.")
```

Nothing in sentence-transformers does that, so the Python files in this folder do, and run only with
`trust_remote_code=True`.
"""


def export(encoder: AnyEncoder, folder: Path, source: str) -> None:
    """Write `encoder` as a sentence-transformers folder with a model card; all of it or nothing.

    Adapters are merged and quantised weights made plain first, in `encoder` itself.

    Raises:
        OptionError: if the folder is there already and not empty.
    """
    from narrlit import __version__

    told = next(
        (text for kind, text in ((SentenceEncoder, SEQUENCES), (ViewEncoder, VIEWS)) if isinstance(encoder, kind)), ""
    )
    card = CARD.format(
        version=__version__,
        source=source,
        dimension=encoder.dimension,
        max_length=encoder.max_length,
        folder=folder.name,
        stories="first, second" if isinstance(encoder, ViewEncoder) else '"A story.", "Another story."',
        unit=f" of a {encoder.pieces[0]}" if told else "",
        consent=", trust_remote_code=True" if told else "",
    )
    encoder.merge()
    with atomic_folder(folder) as temporary:
        encoder.save(temporary)
        (temporary / "README.md").write_text(card + told, encoding="utf-8")
