"""Embedding of the corpora that a parameter file's notebooks search, and its status. Embedding is
separate from running, in full or in parts for many machines.

The notebooks' cells run up to their searches, as in `dry_run`: their output folders are temporary,
and no model is called.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.retrieval.embedding_cache import (
    SHARD,
    WHOLE,
    DocumentKeys,
    PlannedEmbedding,
    ShardPart,
    document_keys,
    embed_part,
    folder_status,
)
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.retrieval.shards import documents_folder, list_shards
from vrag_kit.runner.cluster import open_cluster, parse_cluster
from vrag_kit.runner.dry_run import execute_cells, redirect_outputs, restore_folder_names
from vrag_kit.runner.job import map_threads
from vrag_kit.runner.plan import notebook_name, read_plan, select_notebooks

_A_WORKER = 4
"""Parts per worker: a faster worker does more of them, though each part reads the data again."""
_WORKERS = 8
"""Assumed number of workers of a cluster that has none yet."""


def parse_part(text: str) -> ShardPart:
    """Parse "3/8" as a part, "" as the whole; raises `VragError` for anything else."""
    if not text:
        return WHOLE
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
        place = documents_folder(encoder, corpus.root)
        told = place, document_keys(encoder, corpus.documents).keys.tobytes()
        if told not in seen:
            seen.add(told)
            embed_part(encoder, corpus.documents, corpus.root, part)


def embed_on_cluster(file: Path, cluster: str, only: Sequence[str] = ()) -> None:
    """Embed every corpus that a file's notebooks search by vectors, in parts on the workers of a
    cluster. Its name is "local:2", or the address of a Dask scheduler.

    The workers share the project folder. A part whose worker dies goes to another one; finished
    shards are always kept. Prints the status on disk at the end. Raises `VragError` as
    `embed_parameters`, if a part failed, after all others, and if a vector is missing.
    """
    corpora = list(corpora_to_embed(file, only))
    shards = max(-(-len(corpus.documents) // SHARD) for corpus in corpora)
    failures: list[str] = []
    with open_cluster(parse_cluster(cluster, "--cluster")) as pool:
        count = min(shards, _A_WORKER * (pool.threads().total() or _WORKERS))
        print(f"{count} parts: handed to {pool.name}", flush=True)

        def embed(number: int) -> None:
            try:
                pool.call(embed_parameters, file.absolute(), ShardPart(number, count), only)
            except VragError as error:
                failures.append(f"part {number}/{count}: {error}")
            else:
                print(f"part {number}/{count} is done", flush=True)

        map_threads(embed, range(1, count + 1), count, pool.stop)
    if failures:
        raise VragError(f"{failures[0]} ({len(failures)} of {count} parts were not made)")
    lines, lacking = embedding_status(corpora)
    print(*lines, sep="\n", flush=True)
    if lacking:
        raise VragError(
            f"{lacking:,} documents have no vector, though all parts are done: see above,"
            " and run the same command again, which embeds those alone."
        )


def embedding_status(corpora: Iterable[PlannedEmbedding]) -> tuple[list[str], int]:
    """Return the status of the stored vectors of corpora, as lines to print, and the number of
    documents without a vector, summed over retrievers. Damaged shards are removed.
    """
    found: dict[Path, list[DocumentKeys]] = defaultdict(list)
    roots: set[Path] = set()
    for corpus in corpora:
        roots.add(Path(corpus.root))
        encoder = open_encoder(corpus.entry, device=corpus.device)
        folder = documents_folder(encoder, corpus.root)
        found[folder].append(document_keys(encoder, corpus.documents))
    stored = [folder_status(folder, keys) for folder, keys in found.items()]
    lines = [line for line, _ in stored]
    lacking = sum(missing for _, missing in stored)
    for root in sorted(roots):
        others = [folder for folder in sorted(root.glob("*/")) if folder not in found]
        lines += [
            f"not of these parameters: {folder_status(folder, [])[0]}"
            for folder in others
            if list_shards(folder)
        ]
    return lines, lacking


def corpora_to_embed(file: Path, only: Sequence[str]) -> Iterator[PlannedEmbedding]:
    """Yield the corpora that a file's notebooks search by vectors, notebook by notebook. `only`
    limits the notebooks (`select_notebooks`).
    """
    any_found = False
    why = ""
    (plan,) = select_notebooks([read_plan(file)], only)
    for notebook, settings in plan.settings():
        if "cache_dir" not in settings:  # it searches nothing
            continue
        with tempfile.TemporaryDirectory() as scratch, dry_run(Path(scratch)) as recorded:
            recorded.asks = False
            told = redirect_outputs(settings, Path(scratch))
            if "hardware" in settings:
                told["hardware"] = settings["hardware"]
            fault = execute_cells(notebook, told, recorded.models)[1]
            corpora = [each for each in recorded.corpora if isinstance(each, PlannedEmbedding)]
        if fault and not corpora:
            words = restore_folder_names(fault.words, settings, Path(scratch))
            why = why or f" {notebook_name(notebook)}: {words}"
        any_found = any_found or bool(corpora)
        yield from corpora
    if not any_found:
        raise VragError(f"{file}: no notebook of it comes to a search by vectors.{why}")
