"""What would be embedded, noted instead: by a forecast, which embeds nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.forecast import current_forecast
from vrag_kit.options import Entry
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.known import known_encoder, open_encoder
from vrag_kit.retrieval.own_encoder import EncoderClass
from vrag_kit.types import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Documents, and the retriever whose vectors of them are wanted."""

    entry: Entry | EncoderClass
    documents: Collection[Evidence]
    root: Path | str
    """The folder in which embeddings are kept."""
    device: str

    def open(self) -> Encoder:
        """The encoder, as `open_encoder` gives it."""
        return open_encoder(self.entry, self.root, device=self.device)

    def known(self) -> Encoder | None:
        """The encoder where it was loaded before, as `known_encoder` gives it."""
        return known_encoder(self.entry, self.root)


def note_corpus(
    entry: Entry | EncoderClass,
    documents: Collection[Evidence],
    root: Path | str,
    *,
    device: str,
) -> None:
    """Note in the forecast that is being made, if one is, what would be embedded."""
    forecast = current_forecast()
    if forecast is not None:
        forecast.corpora.append(Corpus(entry=entry, documents=documents, root=root, device=device))
