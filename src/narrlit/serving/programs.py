"""Routes for programs: embeddings as OpenAI's, similarity, and reranking as Cohere and Jina spell it."""

import base64
from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from narrlit.data.schema import FloatArray
from narrlit.encoding.story_encoder import unit_vectors
from narrlit.preprocessing.words import num_words
from narrlit.serving.bodies import RequestBody
from narrlit.serving.problems import RefusedError
from narrlit.serving.requests_in_flight import while_connected
from narrlit.serving.state import Server, ServerOf

router = APIRouter(tags=["programs"])


class EmbeddingRequest(RequestBody):
    """Request for embeddings.

    Attributes:
        input: a text or several.
        model: name of the served model; may be left out.
        encoding_format: numbers as a JSON list, or as little-endian float32 in base64.
        dimensions: dimension of the model; another one is refused.
        user: is ignored.
    """

    input: str | list[str]
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None

    @field_validator("input", mode="before")
    @classmethod
    def _refuse_tokens(cls, value: object) -> object:
        """Refuse numbers of tokens, which LangChain sends unless it is told not to."""
        if isinstance(value, list) and any(type(text) in (int, list) for text in value):
            raise PydanticCustomError(
                "tokens",
                "numbers of tokens are not supported; send texts (LangChain: check_embedding_ctx_length=False)",
            )
        return value


class Usage(BaseModel):
    """Size of a request, in words."""

    prompt_tokens: int
    total_tokens: int


class Embedding(BaseModel):
    """Embedding of a text: numbers, or their bytes in base64."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingAnswer(BaseModel):
    """Embeddings in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage


class ModelCard(BaseModel):
    """Model of the server."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "narrlit"


class ModelList(BaseModel):
    """Models of the server."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class SimilarityRequest(RequestBody):
    """Request for the cosines of texts with `others`, or with each other."""

    texts: Annotated[list[str], Field(min_length=1)]
    others: Annotated[list[str], Field(min_length=1)] | None = None
    model: str | None = None


class SimilarityAnswer(BaseModel):
    """Cosines, a row for each text."""

    similarities: list[list[float]]
    model: str


class Document(BaseModel):
    """Document of a reranking."""

    model_config = ConfigDict(extra="allow")

    text: str


class RerankRequest(RequestBody):
    """Request to order documents by their similarity to a query."""

    query: str
    documents: Annotated[list[str | Document], Field(min_length=1)]
    model: str | None = None
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool = False


class RankedDocument(BaseModel):
    """Document of a reranking; its score is the cosine with the query."""

    index: int
    relevance_score: float
    document: Document | None = None


class RerankAnswer(BaseModel):
    """Documents, the most similar first."""

    id: str
    model: str
    results: list[RankedDocument]
    usage: Usage


class Health(BaseModel):
    """State of the server."""

    status: Literal["ok"] = "ok"
    model: str
    version: str


@router.head("/health", include_in_schema=False)
@router.get("/health")
async def health(server: ServerOf) -> Health:
    """Say that the server answers."""
    return Health(model=server.model, version=server.version)


@router.get("/v1/models")
async def models(server: ServerOf) -> ModelList:
    """List the model of the server."""
    return ModelList(data=[ModelCard(id=server.model, created=server.started)])


@router.post("/v1/embeddings")
async def embeddings(body: EmbeddingRequest, request: Request, server: ServerOf) -> EmbeddingAnswer:
    """Embed texts, with OpenAI's fields."""
    texts = [body.input] if isinstance(body.input, str) else body.input
    vectors = await embed_checked(server, request, texts, "input", body.model)
    dimension = vectors.shape[1]
    if body.dimensions not in (None, dimension):
        message = f"dimensions: vectors of this model have a dimension of {dimension}; leave it out"
        raise RefusedError(400, message, "dimensions")
    data = []
    for index, vector in enumerate(vectors):
        numbers = vector.tolist() if body.encoding_format == "float" else _base64(vector)
        data.append(Embedding(index=index, embedding=numbers))
    return EmbeddingAnswer(data=data, model=server.model, usage=usage_of(texts))


@router.post("/v1/similarity")
async def compute_similarities(body: SimilarityRequest, request: Request, server: ServerOf) -> SimilarityAnswer:
    """Compute the cosine of each text with each of the others, or with each text."""
    others = body.others or []
    vectors = unit_vectors(await embed_checked(server, request, [*body.texts, *others], "texts", body.model))
    rows = vectors[: len(body.texts)]
    columns = vectors[len(body.texts) :] if others else rows
    cosines = np.clip(rows @ columns.T, -1, 1)
    return SimilarityAnswer(similarities=cosines.tolist(), model=server.model)


@router.post("/v1/rerank")
@router.post("/v2/rerank")
async def rerank(body: RerankRequest, request: Request, server: ServerOf) -> RerankAnswer:
    """Order documents by their cosine with a query, the most similar first."""
    documents = [document_of(value) for value in body.documents]
    texts = [document.text for document in documents]
    vectors = unit_vectors(await embed_checked(server, request, [body.query, *texts], "documents", body.model))
    scores = np.clip(vectors[1:] @ vectors[0], -1, 1)
    order = np.argsort(-scores, kind="stable")[: body.top_n]
    results = []
    for index in order.tolist():
        document = documents[index] if body.return_documents else None
        results.append(RankedDocument(index=index, relevance_score=float(scores[index]), document=document))
    return RerankAnswer(id=str(uuid4()), model=server.model, results=results, usage=usage_of([body.query, *texts]))


async def embed_checked(
    server: Server, request: Request, texts: Sequence[str], parameter: str, model: str | None
) -> FloatArray:
    """Check and embed the texts of a request.

    Args:
        server: the server.
        request: the request, which ends if its client leaves.
        texts: N texts.
        parameter: name of their field, for messages.
        model: model that the request names.

    Returns:
        (N, D) embeddings.

    Raises:
        RefusedError: if there is no such model, or a text is blank or too long.
    """
    server.check_model(model)
    limit = server.settings.limits.texts
    if not texts:
        raise RefusedError(400, f"{parameter}: give at least one text", parameter)
    if len(texts) > limit:
        raise RefusedError(400, f"{parameter}: {len(texts):,} texts, but {limit:,} at most", parameter)
    for number, text in enumerate(texts):
        if not text.strip():
            raise RefusedError(400, f"{parameter}: text {number} is blank; give a text with words", parameter)
        server.check_length(text, parameter)
    return await while_connected(request, server.batcher.embed(texts))


def document_of(value: str | Document) -> Document:
    """Return a document that is given as such or as its text."""
    return Document(text=value) if isinstance(value, str) else value


def usage_of(texts: Sequence[str]) -> Usage:
    """Count the words of texts."""
    words = sum(map(num_words, texts))
    return Usage(prompt_tokens=words, total_tokens=words)


def _base64(vector: FloatArray) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
