"""Text encoders: sentence-transformers folders, and plain transformers checkpoints.

Plain checkpoints are pooled by an option, with one encoder per side if necessary (DRAGON+).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from vrag_kit.checkpoints import LibraryObject, Options, check_weights
from vrag_kit.errors import VragError
from vrag_kit.files import safe_join
from vrag_kit.retrieval.encoders.pixels import normalize_rows
from vrag_kit.retrieval.encoders.pooling import POOLINGS, pool
from vrag_kit.retrieval.encoders.source import CheckpointSource, max_text_tokens
from vrag_kit.types import Document, Query


@dataclass(frozen=True, slots=True)
class TextTower:
    """Model, tokenizer and prompt of one side: questions or documents."""

    model: LibraryObject
    tokenizer: LibraryObject
    prompt: str
    """Prompt with "{text}" where the text goes."""


class TextEncoder:
    """Pools the token states of a transformers model. Questions and documents have the same model,
    or one each.
    """

    def __init__(
        self,
        questions: TextTower,
        documents: TextTower,
        *,
        source: CheckpointSource,
        options: Options,
        pooling: str,
        normalized: bool,
    ) -> None:
        """`pooling` is one of `POOLINGS`; rows are brought to unit length when
        `normalized`.
        """
        self._questions = questions
        self._documents = documents
        self._pooling = pooling
        self.name = source.name
        self.fingerprint = source.fingerprint(options)
        self.document_key = source.document_key(options)
        self.normalized = normalized
        self.prompts = {"query": questions.prompt, "document": documents.prompt}
        self.modalities = source.modalities

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns query vectors, float32, shape (n, d); texts are truncated at the model's length.

        Queries are encoded one at a time, so the result does not depend on other queries.
        """
        prompt = self._questions.prompt
        texts = [prompt.replace("{text}", query.text) for query in queries]
        if not texts:
            return np.empty((0, self._questions.model.config.hidden_size), np.float32)
        return np.concatenate([self._embed([text], self._questions) for text in texts])

    def prepare(self, document: Document) -> str:
        """Returns the document's text within its prompt."""
        text = self.modalities.of_document(document, self.name).text or ""
        return self._documents.prompt.replace("{text}", text)

    def encode_documents(self, prepared: Sequence[str]) -> np.ndarray:
        """Returns document vectors, float32, shape (n, d)."""
        return self._embed(prepared, self._documents)

    @torch.inference_mode()
    def _embed(self, texts: Sequence[str], side: TextTower) -> np.ndarray:
        tokens = side.tokenizer(
            list(texts),
            truncation=True,
            max_length=max_text_tokens(side.tokenizer, side.model.config),
            padding=True,
            padding_side="right",
            return_tensors="pt",
        ).to(side.model.device)
        states = side.model(**tokens).last_hidden_state
        return _rows(pool(states, tokens["attention_mask"], self._pooling), self.normalized)


class SentenceTransformerEncoder:
    """A sentence-transformers model, with the pooling and prompts of its folder."""

    def __init__(
        self,
        model: LibraryObject,
        *,
        source: CheckpointSource,
        options: Options,
        normalized: bool,
    ) -> None:
        """Rows are brought to unit length when `normalized`."""
        self._model = model
        self.name = source.name
        self.fingerprint = source.fingerprint(options)
        self.document_key = source.document_key(options)
        self.normalized = normalized
        self.prompts: Mapping[str, str] = {
            side: (model.prompts.get(side) or "") + "{text}" for side in ("query", "document")
        }
        self.modalities = source.modalities

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns query vectors, float32, shape (n, d), encoded one at a time."""
        rows = []
        for query in queries:
            vectors = self._model.encode_query(
                [query.text], convert_to_tensor=True, show_progress_bar=False
            )
            rows.append(_rows(vectors, self.normalized))
        if not rows:
            return np.empty((0, self._model.get_embedding_dimension()), np.float32)
        return np.concatenate(rows)

    def prepare(self, document: Document) -> str:
        """Returns the document's text."""
        return self.modalities.of_document(document, self.name).text or ""

    def encode_documents(self, prepared: Sequence[str]) -> np.ndarray:
        """Returns document vectors, float32, shape (n, d)."""
        vectors = self._model.encode_document(
            list(prepared), convert_to_tensor=True, show_progress_bar=False
        )
        return _rows(vectors, self.normalized)


def _rows(vectors: torch.Tensor, normalized: bool) -> np.ndarray:
    rows: np.ndarray = normalize_rows(vectors) if normalized else vectors.float().cpu().numpy()
    return rows


def load_text_encoder(
    source: CheckpointSource,
    *,
    pooling: str | None = None,
    normalize: bool = True,
    query_prompt: str = "{text}",
    document_prompt: str = "{text}",
) -> TextEncoder:
    """Loads a plain text checkpoint, with its partner, if any, as the document encoder. Rows have
    unit length unless `normalize` is false.

    Raises `VragError` as `CheckpointSource.read` does, for an unknown pooling, and for a document
    prompt without a place for the text.
    """
    if pooling not in POOLINGS:
        raise VragError(
            f"{source.owner}: pooling is {pooling!r}, and nothing in its files says how"
            " token states become one vector. Add the option `pooling`, one of"
            f" {', '.join(POOLINGS)}, and `normalize`, as its authors give them."
        )
    if "{text}" not in document_prompt:
        raise VragError(
            f"{source.owner}: document_prompt is {document_prompt!r}; expected"
            ' "{text}" in it, where the document\'s text goes.'
        )
    model, tokenizer = _read(source)
    questions = TextTower(model, tokenizer, query_prompt)
    if source.partner is not None:
        model, tokenizer = _read(replace(source, folder=source.partner))
    documents = TextTower(model, tokenizer, document_prompt)
    chosen = {
        "family": "text",
        "dtype": str(questions.model.dtype),
        "pooling": pooling,
        "normalize": normalize,
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
    }
    return TextEncoder(
        questions,
        documents,
        source=source,
        options=chosen,
        pooling=pooling,
        normalized=normalize,
    )


def _read(source: CheckpointSource) -> tuple[LibraryObject, LibraryObject]:
    """(model, tokenizer)."""
    from transformers import AutoModel, AutoTokenizer

    return source.read(AutoModel, unused=("pooler.",)), source.read_part(AutoTokenizer)


def load_sentence_transformer(
    source: CheckpointSource,
    *,
    normalize: bool | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
) -> SentenceTransformerEncoder:
    """Loads a folder of the sentence-transformers library.

    Prompts given here replace the folder's own; the library puts them before the text, so "{text}"
    ends them. `normalize` None does as the folder's modules do. Raises `VragError` as
    `CheckpointSource.read` does, for a prompt that ends otherwise, and when `normalize` is false
    but the modules normalize.
    """
    from sentence_transformers.sentence_transformer.modules import Normalize

    model = _read_sentence(source)
    for side, prompt in (("query", query_prompt), ("document", document_prompt)):
        if prompt is None:
            continue
        if not prompt.endswith("{text}"):
            raise VragError(
                f'{source.owner}: {side}_prompt is {prompt!r}; expected "{{text}}"'
                " at its end, as sentence-transformers puts prompts before the text."
            )
        model.prompts[side] = prompt.removesuffix("{text}")
    own = any(isinstance(module, Normalize) for module in model)
    if own and normalize is False:
        raise VragError(
            f"{source.owner}: normalize is false, but its own modules bring vectors to"
            " unit length. Remove the option."
        )
    normalized = own or bool(normalize)
    chosen = {
        "family": "sentence",
        "dtype": str(model.dtype),
        "normalize": normalized,
        "prompts": model.prompts,
    }
    return SentenceTransformerEncoder(
        model.eval(), source=source, options=chosen, normalized=normalized
    )


def _read_sentence(source: CheckpointSource) -> LibraryObject:
    """Returns the library's model; raises `VragError` as `CheckpointSource.read` does."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Transformer

    modules = source.folder / "modules.json"
    with source.reading():
        parts = json.loads(modules.read_text(encoding="utf-8"))
        folders = [safe_join(source.folder, part["path"], str(modules)) for part in parts]
        model = SentenceTransformer(
            str(source.folder),
            device=source.device,
            trust_remote_code=source.trust_remote_code,
            local_files_only=True,
            model_kwargs={"dtype": source.dtype, "use_safetensors": True},
        )
    for folder, module in zip(folders, model, strict=True):
        if isinstance(module, Transformer):
            # once more: the library does not say which weights were missing
            alone = replace(source, folder=folder, device="cpu")
            alone.read(type(module.model), unused=("pooler.",))
    check_weights(model, source.owner)
    return model
