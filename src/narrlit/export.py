"""Trained encoders out: sentence-transformers folders that load without this package."""

from pathlib import Path

from narrlit.files import atomic_folder
from narrlit.models.encoder import Encoder

CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, narrative-similarity]
---
# A story encoder

Stories are near in it when their theme, course of action and outcome are alike. Exported by narrlit {version}
from `{source}`; {dimension} numbers a story, {max_length} tokens at most.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{folder}")
vectors = model.encode(["A story.", "Another story."])
print(model.similarity(vectors, vectors))
```
"""


def export(encoder: Encoder, folder: Path, source: str) -> None:
    """Write `encoder` as a sentence-transformers folder with a model card; all of it or nothing.

    Adapters are merged and quantised weights made plain first, in `encoder` itself.

    Raises:
        OptionError: if the folder is there already and not empty.
    """
    from narrlit import __version__

    card = CARD.format(
        version=__version__,
        source=source,
        dimension=encoder.dimension,
        max_length=encoder.max_length,
        folder=folder.name,
    )
    encoder.merge()
    with atomic_folder(folder) as temporary:
        encoder.save(temporary)
        (temporary / "README.md").write_text(card, encoding="utf-8")
