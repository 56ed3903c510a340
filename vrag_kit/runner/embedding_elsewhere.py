"""Embedding by the workers of a Dask cluster, in parts as of `vrag embed --part i/n`.

runs/visual_rag/paper/embedding/3_of_8.log    the output of a part
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.retrieval.embedding_cache import SHARD, ShardPart
from vrag_kit.runner.cluster import open_cluster, parse_cluster
from vrag_kit.runner.elsewhere import DaskPool, WorkerContext, pool_on_worker
from vrag_kit.runner.embed import (
    corpora_to_embed,
    embed_parameters,
    embedding_status,
    parse_part,
)
from vrag_kit.runner.job import exit_with_parent, run_logged
from vrag_kit.runner.locks import run_lock
from vrag_kit.runner.plan import read_plan

_A_WORKER = 4
"""Parts per worker: a faster worker does more of them, though each part reads the data again."""
_WORKERS = 8
"""Assumed number of workers of a cluster that has none yet."""
_APART = (
    "import sys; from vrag_kit.runner.embedding_elsewhere import embed_in_process;"
    " embed_in_process(*sys.argv[1:])"
)


def embed_on_cluster(file: Path, cluster: str, *, only: Sequence[str] = ()) -> None:
    """Embed every corpus that a file's notebooks search by vectors, on the workers of a cluster.
    Its name is "local:2", or the address of a Dask scheduler.

    The workers share the project folder. A part whose worker dies goes to another one; finished
    shards are always kept. Prints the status on disk at the end. Raises `VragError` as
    `embed_parameters`, if a part failed, after all others, and if a vector is missing.
    """
    file = file.absolute()
    corpora = list(corpora_to_embed(file, only))
    shards = max(-(-len(corpus.documents) // SHARD) for corpus in corpora)
    folder = read_plan(file).folder / "embedding"
    with (
        run_lock(folder / ".lock", f"vrag embed {file} --cluster"),
        open_cluster(parse_cluster(cluster, "--cluster")) as opened,
    ):
        count = min(shards, _A_WORKER * (opened.slots or _WORKERS))
        _hand_out(DaskPool(opened), folder, file, count, only)
    status = embedding_status(corpora)
    print(*status.lines, sep="\n", flush=True)
    if status.lacking:
        raise VragError(
            f"{status.lacking:,} documents have no vector, though all parts are done: see above,"
            " and run the same command again, which embeds those alone."
        )


def _hand_out(hands: DaskPool, folder: Path, file: Path, count: int, only: Sequence[str]) -> None:
    """Submit all parts; raises `VragError` with the number of parts that failed. After a stop,
    parts that were running are not reported.
    """
    print(f"{count} parts: {hands.begins}", flush=True)
    faults: list[str] = []

    def embed(number: int) -> None:
        part = ShardPart(number, count)
        output = folder / f"{number}_of_{count}"
        try:
            fault = hands.wait(embed_on_worker, file, part, tuple(only), output)
        except VragError as error:
            fault = str(error)
        if fault:
            faults.append(f"part {number}/{count}: {fault}")
        else:
            print(f"part {number}/{count} is done", flush=True)

    with ThreadPoolExecutor(count) as pool:
        try:
            list(pool.map(embed, range(1, count + 1)))
        finally:  # also when interrupted: nothing goes on behind the user's back
            pool.shutdown(wait=False, cancel_futures=True)
            hands.stop()
    if faults:
        others = f" ({len(faults)} of {count} parts were not made)" if count > 1 else ""
        raise VragError(f"{faults[0]}{others}")


def embed_on_worker(
    us: WorkerContext, file: Path, part: ShardPart, only: Sequence[str], output: Path
) -> str:
    """On a worker, embed a part in a separate process, which ends when this one does. Its log is
    `output` with ".log". Returns why the part failed, "" if it succeeded.

    Raises `VragError` as `pool_on_worker` does.
    """
    fault = output.with_suffix(".fault")
    fault.unlink(missing_ok=True)
    command = [sys.executable, "-c", _APART, str(file), f"{part.number}/{part.of}", str(fault)]
    name = f"part {part.number}/{part.of}"
    status = run_logged([*command, *only], name, output, pool_on_worker(us))
    if fault.is_file():
        return fault.read_text(encoding="utf-8")
    return f"its process ended with {status}; see {output.with_suffix('.log')}" if status else ""


def embed_in_process(file: str, part: str, fault: str, *only: str) -> None:
    """In a process started by a worker, embed a part, or write to `fault` why it failed."""
    exit_with_parent()
    try:
        embed_parameters(Path(file), parse_part(part), only)
    except VragError as error:
        write_file(Path(fault), str(error))
        sys.exit(f"error: {error}")
