"""Embedding of the corpora that a parameter file's notebooks search, separate from running, in full
or in parts for many machines.

The notebooks' cells run up to their searches, as in `dry_run`: their output folders are temporary,
and no model is called.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.retrieval.embedding_cache import ShardPart, embed_part
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.runner.dry_run import execute_cells, redirect_outputs
from vrag_kit.runner.plan import read_plan, select_notebooks


def parse_part(text: str) -> ShardPart:
    """Parse "3/8" as a part; raises `VragError` for anything else."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found and 1 <= int(found[1]) <= int(found[2]):
        return ShardPart(int(found[1]), int(found[2]))
    raise VragError(f"--part is {text!r}; expected i/n with i from 1 to n, such as 3/8.")


def embed_parameters(file: Path, part: ShardPart, only: Sequence[str]) -> None:
    """Embed a part of every corpus that the notebooks search by vectors; `only` limits the
    notebooks (`select_notebooks`).

    Raises `VragError` as `embed_documents` does, and if no notebook searches.
    """
    searches = False
    (plan,) = select_notebooks([read_plan(file)], only)
    for task in plan.tasks:
        if "cache_dir" not in task.settings:  # it searches nothing
            continue
        with tempfile.TemporaryDirectory() as scratch, dry_run(Path(scratch)) as recorded:
            recorded.asks = False
            redirected = redirect_outputs(task.settings, Path(scratch))
            execute_cells(task.notebook, redirected, recorded.models)
        for corpus in recorded.corpora:
            encoder = open_encoder(corpus.entry, device=corpus.device)
            embed_part(encoder, corpus.documents, corpus.root, part)
        searches = searches or bool(recorded.corpora)
    if not searches:
        hint = f"`vrag run --dry-run {file}` names what fails."
        raise VragError(f"{file}: no notebook of it comes to a search by vectors. {hint}")
