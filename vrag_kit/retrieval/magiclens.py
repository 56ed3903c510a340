"""MagicLens: a dual encoder's two vectors of a picture and an instruction, made one by a
small head.

A checkpoint of this kind is a folder with

    config.json         model_type "magiclens", the fields of `HeadSizes`, and "base":
                        the dual encoder in open_clip's layout, a folder in here or
                        a retriever's name
    model.safetensors   the head's weights

The authors publish JAX parameters as a pickle, which `torch.load` cannot read and nothing
here opens. Their code's ranking can be given as a TREC run. To use their weights, write
them as safetensors where flax is installed (`safetensors.flax.save_file`), then bring names
and shapes into those of `MagicLensHead` and open_clip. Commit aa7cfde holds a converter,
vrag_kit/retrieval/convert_magiclens.py, that was tried on random weights only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import torch

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError
from vrag_kit.retrieval.magiclens_head import HeadSizes, MagicLensHead
from vrag_kit.retrieval.openclip import OpenClipEncoder, load_open_clip
from vrag_kit.retrieval.own_weights import own_config, read_own
from vrag_kit.retrieval.parts import Content
from vrag_kit.retrieval.pictures import decode_rgb, unit_rows
from vrag_kit.retrieval.source import Source
from vrag_kit.retrieval.towers import Both
from vrag_kit.types import Evidence, Query


class MagicLensEncoder:
    """Questions as picture and text, documents as picture and empty text, unit length."""

    normalized = True

    def __init__(
        self,
        towers: OpenClipEncoder,
        head: MagicLensHead,
        *,
        stage: int,
        source: Source,
        options: Options,
        query_prompt: str = "{text}",
    ) -> None:
        """`towers` give the vectors as long as they come, or, with a `stage`, that map
        of a picture; `query_prompt` has "{text}" where the question goes.
        """
        self._towers = towers
        self._stage = stage
        self._head = head
        self.name = source.name
        self.fingerprint = source.fingerprint(options)
        self.documents = source.documents(options)
        self.shown = source.shown
        self.prompts: Mapping[str, str] = {"query": query_prompt}

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d); the question within its prompt.

        One at a time, so that company changes nothing.
        """
        rows = []
        for query in queries:
            text, image = self.shown.of_query(query, self.name)
            if text is not None:
                text = self.prompts["query"].replace("{text}", text)
            rows.append(self.encode_documents([self._prepared(Content(text, image))]))
        return np.concatenate(rows) if rows else np.empty((0, self._towers.dim), np.float32)

    def prepare(self, document: Evidence) -> Both:
        """The picture as its tower takes it, and the text, empty unless it is shown.

        Raises `VragError` naming a document without it, or with a damaged picture.
        """
        return self._prepared(self.shown.of_document(document, self.name))

    def _prepared(self, content: Content) -> Both:
        text, image = content
        if image is None:
            raise ValueError(f"{self.name} has no vector of a text alone")
        pixels = self._towers.pixels(decode_rgb(image.data(), image.where))
        return Both(text or "", pixels)

    @torch.inference_mode()
    def encode_documents(self, prepared: Sequence[Both]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d)."""
        pixels = [each.pixels for each in prepared]
        if self._stage:
            pictures = self._towers.stage_features(pixels, self._stage)
        else:
            pictures = self._towers.picture_features(pixels)
        said = list(dict.fromkeys(each.text for each in prepared))
        texts = self._towers.text_features(said)
        texts = texts[[said.index(each.text) for each in prepared]]
        return unit_rows(self._head(pictures.float(), texts.float()))


def load_magiclens(source: Source, *, query_prompt: str = "{text}") -> MagicLensEncoder:
    """Load a head and the dual encoder that it stands on, `source.partner`, which is in
    open_clip's layout.

    Raises `VragError` as `load_open_clip` and `read_own` do, and for a head that is as
    wide as another dual encoder's vectors.
    """
    sizes = HeadSizes(**own_config(source, [field.name for field in fields(HeadSizes)]))
    base = source.partner or source.folder
    towers = load_open_clip(str(base), folder=base, device=source.device)
    if towers.dim != sizes.width:
        raise VragError(
            f"{source.owner}: the head takes vectors of {sizes.width} components, but those of its"
            f" base {base.name} have {towers.dim}. Correct `base` in"
            f" {source.folder / 'config.json'}, or train the head on this base."
        )
    head = read_own(MagicLensHead(sizes), source)
    options = {"family": "magiclens", "query_prompt": query_prompt}
    return MagicLensEncoder(
        towers,
        head,
        stage=sizes.stage,
        source=source,
        options=options,
        query_prompt=query_prompt,
    )
