"""Encoders of documents that are text: sentence-transformers folders, and plain
checkpoints pooled as told, with one encoder a side if need be (DRAGON+).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from vrag_kit.checkpoints import check_weights, find_checkpoint
from vrag_kit.errors import VragError
from vrag_kit.options import Entry, read_entry
from vrag_kit.retrieval.encoders import unit_rows
from vrag_kit.retrieval.pooling import POOLINGS, pool
from vrag_kit.retrieval.source import Source, longest_text
from vrag_kit.types import Evidence, Query


class TextEncoder:
    """Token states of a transformers model, pooled; questions and documents by the same
    model, or by one each.
    """

    def __init__(
        self,
        query_model: Any,
        query_tokenizer: Any,
        document_model: Any,
        document_tokenizer: Any,
        *,
        name: str,
        fingerprint: str,
        pooling: str,
        normalized: bool,
        query_prompt: str = "{text}",
        document_prompt: str = "{text}",
    ) -> None:
        """`pooling` is one of `POOLINGS`; rows are brought to unit length when
        `normalized`.
        """
        self._query_side, self._document_side, self._pooling = (
            (query_model, query_tokenizer),
            (document_model, document_tokenizer),
            pooling,
        )
        self.name, self.fingerprint, self.normalized = name, fingerprint, normalized
        self.prompts: Mapping[str, str] = {"query": query_prompt, "document": document_prompt}

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """float32, shape (n, d); texts are cut at the model's length.

        One at a time, so that company changes nothing.
        """
        rows = [
            self._embed([self.prompts["query"].replace("{text}", query.text)], *self._query_side)
            for query in queries
        ]
        return (
            np.concatenate(rows)
            if rows
            else np.empty((0, self._query_side[0].config.hidden_size), np.float32)
        )

    def prepare(self, document: Evidence) -> str:
        """The text within its prompt."""
        return self.prompts["document"].replace("{text}", text_of(document, self.name))

    def encode_documents(self, prepared: Sequence[str]) -> np.ndarray:
        """float32, shape (n, d)."""
        return self._embed(prepared, *self._document_side)

    @torch.inference_mode()
    def _embed(self, texts: Sequence[str], model: Any, tokenizer: Any) -> np.ndarray:
        tokens = tokenizer(
            list(texts),
            truncation=True,
            max_length=longest_text(tokenizer, model.config),
            padding=True,
            padding_side="right",
            return_tensors="pt",
        ).to(model.device)
        vectors = pool(model(**tokens).last_hidden_state, tokens["attention_mask"], self._pooling)
        return unit_rows(vectors) if self.normalized else vectors.float().cpu().numpy()


class SentenceEncoder:
    """A model of the sentence-transformers library, which pools, and says its prompts,
    as its folder tells it to.
    """

    def __init__(self, model: Any, *, name: str, fingerprint: str, normalized: bool) -> None:
        """`model` is a SentenceTransformer; rows are brought to unit length when
        `normalized`.
        """
        self._model = model
        self.name, self.fingerprint, self.normalized = name, fingerprint, normalized
        self.prompts: Mapping[str, str] = {
            side: (model.prompts.get(side) or "") + "{text}" for side in ("query", "document")
        }

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """float32, shape (n, d); one at a time, so that company changes nothing."""
        rows = [
            self._rows(
                self._model.encode_query(
                    [query.text], convert_to_tensor=True, show_progress_bar=False
                )
            )
            for query in queries
        ]
        return (
            np.concatenate(rows)
            if rows
            else np.empty((0, self._model.get_embedding_dimension()), np.float32)
        )

    def prepare(self, document: Evidence) -> str:
        """The text."""
        return text_of(document, self.name)

    def encode_documents(self, prepared: Sequence[str]) -> np.ndarray:
        """float32, shape (n, d)."""
        return self._rows(
            self._model.encode_document(
                list(prepared), convert_to_tensor=True, show_progress_bar=False
            )
        )

    def _rows(self, vectors: torch.Tensor) -> np.ndarray:
        return unit_rows(vectors) if self.normalized else vectors.float().cpu().numpy()


def text_of(document: Evidence, encoder: str) -> str:
    """What the document says; raises `VragError` naming a document that says nothing."""
    if not (document.text or "").strip():
        raise VragError(f"document {document.doc_id!r} has no text; {encoder} encodes texts only.")
    return document.text or ""


def load_text(
    source: Source,
    *,
    pooling: str | None = None,
    normalize: bool = True,
    documents: Entry | None = None,
    query_prompt: str = "{text}",
    document_prompt: str = "{text}",
) -> TextEncoder:
    """Load a plain text checkpoint, and `documents` as the encoder of the other side if
    given; rows have unit length unless `normalize` is false.

    Raises `VragError` as `Source.read` does, for an unknown pooling, and for a document
    prompt without a place for the text.
    """
    from transformers import AutoModel, AutoTokenizer

    if pooling not in POOLINGS:
        raise VragError(
            f"retriever {source.spec!r}: pooling is {pooling!r}, and nothing in its files says how"
            " token states become one vector. Add the option `pooling`, one of"
            f" {', '.join(POOLINGS)}, and `normalize`, as its authors give them."
        )
    if "{text}" not in document_prompt:
        raise VragError(
            f"retriever {source.spec!r}: document_prompt is {document_prompt!r}; expected"
            ' "{text}" in it, where the document\'s text goes.'
        )
    other = source
    if documents is not None:
        spec, options = read_entry(documents, ("revision",), "documents")
        other = replace(
            source, spec=spec, folder=find_checkpoint(spec, revision=options.get("revision"))
        )
    sides = [
        (each.read(AutoModel, unused=("pooler.",)), each.read_part(AutoTokenizer))
        for each in ([source, other] if other is not source else [source])
    ]
    query, document = sides[0], sides[-1]
    chosen = {
        "family": "text",
        "dtype": str(query[0].dtype),
        "pooling": pooling,
        "normalize": normalize,
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
    }
    return TextEncoder(
        *query,
        *document,
        name=source.name,
        fingerprint=source.fingerprint(chosen, *([other.folder] if other is not source else [])),
        pooling=pooling,
        normalized=normalize,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
    )


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
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Transformer

    source.check_formats()
    with source.reading():
        model = SentenceTransformer(
            str(source.folder),
            device=source.device,
            trust_remote_code=source.trust_remote_code,
            local_files_only=True,
            model_kwargs={"dtype": source.dtype, "use_safetensors": True},
        )
        parts = json.loads((source.folder / "modules.json").read_text(encoding="utf-8"))
    for part, module in zip(parts, model, strict=True):
        if isinstance(
            module, Transformer
        ):  # read once more, because the library does not say which weights were missing
            replace(source, folder=source.folder / part["path"], device="cpu").read(
                type(module.model), unused=("pooler.",)
            )
    check_weights(model, f"retriever {source.spec!r}")
    for side, prompt in (("query", query_prompt), ("document", document_prompt)):
        if prompt is not None:
            if not prompt.endswith("{text}"):
                raise VragError(
                    f'retriever {source.spec!r}: {side}_prompt is {prompt!r}; expected "{{text}}"'
                    " at its end, as sentence-transformers puts prompts before the text."
                )
            model.prompts[side] = prompt.removesuffix("{text}")
    own = any(isinstance(module, Normalize) for module in model)
    if own and normalize is False:
        raise VragError(
            f"retriever {source.spec!r}: normalize is false, but its own modules bring vectors to"
            " unit length. Remove the option."
        )
    normalized = own or bool(normalize)
    chosen = {
        "family": "sentence",
        "dtype": str(model.dtype),
        "normalize": normalized,
        "prompts": model.prompts,
    }
    return SentenceEncoder(
        model.eval(),
        name=source.name,
        fingerprint=source.fingerprint(chosen),
        normalized=normalized,
    )
