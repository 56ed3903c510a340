"""Encoders of texts: sentence-transformers folders, and plain checkpoints.

The plain ones are pooled as told, with one encoder a side if need be (DRAGON+).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from vrag_kit.checkpoints import Made, Options, check_weights
from vrag_kit.errors import VragError
from vrag_kit.files import inside
from vrag_kit.retrieval.pictures import unit_rows
from vrag_kit.retrieval.pooling import POOLINGS, pool
from vrag_kit.retrieval.source import Source, longest_text
from vrag_kit.types import Evidence, Query


@dataclass(frozen=True, slots=True)
class Side:
    """What encodes questions, or documents."""

    model: Made
    tokenizer: Made
    prompt: str
    """With "{text}" where the text goes."""


class TextEncoder:
    """Token states of a transformers model, pooled; questions and documents by the same
    model, or by one each.
    """

    def __init__(
        self,
        questions: Side,
        documents: Side,
        *,
        source: Source,
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
        self.documents = source.documents(options)
        self.normalized = normalized
        self.prompts = {"query": questions.prompt, "document": documents.prompt}
        self.shown = source.shown

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """float32, shape (n, d); texts are cut at the model's length.

        One at a time, so that company changes nothing.
        """
        prompt = self._questions.prompt
        texts = [prompt.replace("{text}", query.text) for query in queries]
        if not texts:
            return np.empty((0, self._questions.model.config.hidden_size), np.float32)
        return np.concatenate([self._embed([text], self._questions) for text in texts])

    def prepare(self, document: Evidence) -> str:
        """The text within its prompt."""
        text = self.shown.of_document(document, self.name).text or ""
        return self._documents.prompt.replace("{text}", text)

    def encode_documents(self, prepared: Sequence[str]) -> np.ndarray:
        """float32, shape (n, d)."""
        return self._embed(prepared, self._documents)

    @torch.inference_mode()
    def _embed(self, texts: Sequence[str], side: Side) -> np.ndarray:
        tokens = side.tokenizer(
            list(texts),
            truncation=True,
            max_length=longest_text(side.tokenizer, side.model.config),
            padding=True,
            padding_side="right",
            return_tensors="pt",
        ).to(side.model.device)
        states = side.model(**tokens).last_hidden_state
        return _rows(pool(states, tokens["attention_mask"], self._pooling), self.normalized)


class SentenceEncoder:
    """A model of the sentence-transformers library, which pools, and says its prompts,
    as its folder tells it to.
    """

    def __init__(
        self,
        model: Made,
        *,
        source: Source,
        options: Options,
        normalized: bool,
    ) -> None:
        """Rows are brought to unit length when `normalized`."""
        self._model = model
        self.name = source.name
        self.fingerprint = source.fingerprint(options)
        self.documents = source.documents(options)
        self.normalized = normalized
        self.prompts: Mapping[str, str] = {
            side: (model.prompts.get(side) or "") + "{text}" for side in ("query", "document")
        }
        self.shown = source.shown

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """float32, shape (n, d); one at a time, so that company changes nothing."""
        rows = []
        for query in queries:
            vectors = self._model.encode_query(
                [query.text], convert_to_tensor=True, show_progress_bar=False
            )
            rows.append(_rows(vectors, self.normalized))
        if not rows:
            return np.empty((0, self._model.get_embedding_dimension()), np.float32)
        return np.concatenate(rows)

    def prepare(self, document: Evidence) -> str:
        """The text."""
        return self.shown.of_document(document, self.name).text or ""

    def encode_documents(self, prepared: Sequence[str]) -> np.ndarray:
        """float32, shape (n, d)."""
        vectors = self._model.encode_document(
            list(prepared), convert_to_tensor=True, show_progress_bar=False
        )
        return _rows(vectors, self.normalized)


def _rows(vectors: torch.Tensor, normalized: bool) -> np.ndarray:
    rows: np.ndarray = unit_rows(vectors) if normalized else vectors.float().cpu().numpy()
    return rows


def load_text(
    source: Source,
    *,
    pooling: str | None = None,
    normalize: bool = True,
    query_prompt: str = "{text}",
    document_prompt: str = "{text}",
) -> TextEncoder:
    """Load a plain text checkpoint, with its partner, if it has one, as the encoder of
    the document side; rows have unit length unless `normalize` is false.

    Raises `VragError` as `Source.read` does, for an unknown pooling, and for a document
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
    questions = Side(model, tokenizer, query_prompt)
    if source.partner is not None:
        model, tokenizer = _read(replace(source, folder=source.partner))
    documents = Side(model, tokenizer, document_prompt)
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


def _read(source: Source) -> tuple[Made, Made]:
    """(model, tokenizer)."""
    from transformers import AutoModel, AutoTokenizer

    return source.read(AutoModel, unused=("pooler.",)), source.read_part(AutoTokenizer)


def load_sentence(
    source: Source,
    *,
    normalize: bool | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
) -> SentenceEncoder:
    """Load a folder of the sentence-transformers library.

    Prompts given here replace the folder's own; the library puts them before the text,
    so "{text}" ends them. `normalize` None does as the folder's modules do. Raises
    `VragError` as `Source.read` does, for a prompt that ends otherwise, and when
    `normalize` is false but the modules normalize.
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
    return SentenceEncoder(model.eval(), source=source, options=chosen, normalized=normalized)


def _read_sentence(source: Source) -> Made:
    """The library's model; raises `VragError` as `Source.read` does."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Transformer

    modules = source.folder / "modules.json"
    with source.reading():
        parts = json.loads(modules.read_text(encoding="utf-8"))
        folders = [inside(source.folder, part["path"], str(modules)) for part in parts]
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
