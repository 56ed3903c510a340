"""Embedding of the corpora that a parameter file's notebooks search, separate from running, in full
or in parts for many machines.

The notebooks' cells run up to their searches, as in `dry_run`: their output folders are temporary,
and no model is called.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.retrieval.embedding_cache import (
    PlannedEmbedding,
    ShardPart,
    document_keys,
    embed_part,
)
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.retrieval.shards import documents_folder
from vrag_kit.runner.dry_run import execute_cells, redirect_outputs
from vrag_kit.runner.plan import notebook_name, read_plan, select_notebooks


def parse_part(text: str) -> ShardPart:
    """Parse "3/8" as a part; raises `VragError` for anything else."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found and 1 <= int(found[1]) <= int(found[2]):
        return ShardPart(int(found[1]), int(found[2]))
    raise VragError(f"--part is {text!r}; expected i/n with i from 1 to n, such as 3/8.")


def embed_parameters(file: Path, part: ShardPart, only: Sequence[str]) -> None:
    """Embed a part of every corpus that the notebooks search by vectors.

    Raises `VragError` as `embed_documents` does, and if no notebook searches.
    """
    seen: set[tuple[Path, bytes]] = set()
    for corpus in corpora_to_embed(file, only):
        encoder = open_encoder(corpus.entry, device=corpus.device)
        _, keys = document_keys(encoder, corpus.documents)
        identity = (documents_folder(encoder, corpus.root), keys.tobytes())
        if identity not in seen:
            seen.add(identity)
            embed_part(encoder, corpus.documents, corpus.root, part)


def corpora_to_embed(file: Path, only: Sequence[str]) -> Iterator[PlannedEmbedding]:
    """Yield the corpora that a file's notebooks search by vectors, notebook by notebook. `only`
    limits the notebooks (`select_notebooks`).
    """
    count, reason = 0, ""
    (plan,) = select_notebooks([read_plan(file)], only)
    for notebook, settings in plan.settings():
        if "cache_dir" not in settings:  # it searches nothing
            continue
        with tempfile.TemporaryDirectory() as scratch, dry_run(Path(scratch)) as recorded:
            recorded.asks = False
            redirected = redirect_outputs(settings, Path(scratch))
            error = execute_cells(notebook, redirected, recorded.models)[1]
            corpora = [each for each in recorded.corpora if isinstance(each, PlannedEmbedding)]
        if error and not corpora:
            reason = reason or f" {notebook_name(notebook)}: {error}"
        count += len(corpora)
        yield from corpora
    if not count:
        raise VragError(f"{file}: no notebook of it comes to a search by vectors.{reason}")
