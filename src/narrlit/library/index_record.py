"""Record of an index, index.json: the model, and how it reads stories."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from narrlit.embedding_cache.space import model_identity
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.files import atomic_path
from narrlit.library.options import INDEX_RECORD, VectorFormat
from narrlit.models.config import Long, Precision

FORMAT = "narrlit index 2"
MOST = 2**53
"""Maximum number of words or stories, up to which floating-point numbers are exact."""
DIMENSIONS_OF_BITS = 8
"""Divisor of the dimensions that LanceDB's IVF_RQ, with one bit per dimension, supports."""
Count = Annotated[int, Field(ge=0, le=MOST)]


class IndexSettings(BaseModel):
    """Model of an index, and how it reads stories."""

    model_config = ConfigDict(extra="allow")

    model: str
    files: str | None
    max_length: int | None
    long: Long
    precision: Precision | None = None
    views: bool
    fusion: Any
    pseudonyms: dict[str, Any] | None
    postprocess: str | None = None

    @classmethod
    def of(cls, encoder: StoryEncoder) -> "IndexSettings":
        """Describe an encoder."""
        record = encoder.record
        return cls(
            model=record["model"],
            files=record["files"],
            max_length=record["max_length"],
            long=record["long"],
            precision=record["precision"],
            views="views" in record,  # a query is not in the files of views; its text is split by position
            fusion=record["fusion"],
            pseudonyms=record.get("pseudonyms"),
            postprocess=None if encoder.postprocessing is None else encoder.postprocessing.steps,
        )

    @property
    def parameters(self) -> dict[str, str]:
        """Parameters of `narrlit.load` by name; those that only have to be given have an empty value."""
        parameters = {"model": self.model, "long": self.long}
        if self.max_length is not None:
            parameters["max_length"] = str(self.max_length)
        if self.views:
            parameters["views"] = ""
        if self.fusion is not None:
            parameters["fusion"] = self.fusion
        if self.pseudonyms is not None:
            parameters["pseudonyms"] = ""
        if self.postprocess is not None:
            parameters["postprocess"] = self.postprocess
        return parameters


class CoverageRecord(BaseModel):
    """Fields of `models.coverage.Coverage`, validated."""

    model_config = ConfigDict(extra="forbid")

    words: Count
    read: float = Field(ge=0, le=MOST)
    texts: Count
    long: Count
    least: float = Field(ge=0, le=1)


class IndexRecord(BaseModel):
    """Contents of index.json; coverage and languages are missing until there are stories.

    Attributes:
        vectors: number format of the stories' vectors.
        quantized: number of stories on which the quantization of the vectors was trained.
    """

    model_config = ConfigDict(extra="allow")

    format: str
    model_path: str
    settings: IndexSettings
    dimension: int
    passages: bool = False
    vectors: VectorFormat = "float32"
    quantized: Count = 0
    coverage: CoverageRecord | None = None
    languages: dict[str, int] | None = None
    fit: dict[str, object] | None = None

    @classmethod
    def of(cls, encoder: StoryEncoder, vectors: VectorFormat = "float32") -> "IndexRecord":
        """Describe a new index of embeddings from an encoder.

        Raises:
            OptionError: if embeddings of this dimension can't be quantized to one bit per dimension.
        """
        if vectors == "binary" and encoder.dimension % DIMENSIONS_OF_BITS != 0:
            raise OptionError("binary_dimension", multiple=DIMENSIONS_OF_BITS, dimension=encoder.dimension)
        path = Path(encoder.name)
        return cls(
            format=FORMAT,
            model_path=str(path.absolute()) if path.exists() else encoder.name,
            settings=IndexSettings.of(encoder),
            dimension=encoder.dimension,
            passages=encoder.facts.reads == "text",
            vectors=vectors,
        )

    def as_dict(self) -> dict[str, object]:
        """Return plain data, without fields that were never set."""
        return self.model_dump(exclude_unset=True)

    def write(self, folder: Path) -> None:
        """Write index.json."""
        with atomic_path(folder / INDEX_RECORD) as temporary:
            temporary.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")


def identity(model: str) -> dict[str, str | None]:
    """Return the current name and digest of a model, named as in the settings of an index."""
    name, files = model_identity(model)
    return {"model": name, "files": files}
