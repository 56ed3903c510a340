"""Records planned embeddings in a dry run, which embeds nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.dry_run import current_dry_run
from vrag_kit.options import Entry
from vrag_kit.retrieval.encoders.base import Encoder
from vrag_kit.retrieval.encoders.custom import CustomEncoder
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.types import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEmbedding:
    """Documents to embed, and the retriever that would embed them."""

    entry: Entry | CustomEncoder
    documents: Collection[Document]
    root: Path | str
    """The folder of cached embeddings."""
    device: str

    def open(self) -> Encoder:
        """Returns the encoder, as `open_encoder` does."""
        return open_encoder(self.entry, device=self.device)


def note_planned_embedding(
    entry: Entry | CustomEncoder,
    documents: Collection[Document],
    root: Path | str,
    *,
    device: str,
) -> None:
    """Record a planned embedding in the current dry run, if there is one."""
    dry_run = current_dry_run()
    if dry_run is not None:
        dry_run.corpora.append(
            PlannedEmbedding(entry=entry, documents=documents, root=root, device=device)
        )
