"""Embedding by the workers of a Dask cluster: each is handed parts of what the notebooks
of a parameter file search, and makes them as `vrag embed --part i/n` does.

runs/visual_rag/paper/embedding/3_of_8.log    all that a part printed
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.retrieval.embedding import SHARD
from vrag_kit.retrieval.keeping import Part
from vrag_kit.runner.clusters import open_cluster, read_cluster
from vrag_kit.runner.elsewhere import Afar, Employer, crew_of
from vrag_kit.runner.embedding import corpora_of, embed_parameters, embedding_status, read_part
from vrag_kit.runner.execution import attend, go_first
from vrag_kit.runner.locks import alone
from vrag_kit.runner.plan import read_plan

_A_WORKER = 4
"""Parts for each: who is fast makes more of them, though each reads the data anew."""
_WORKERS = 8
"""Of a cluster to which none has come yet."""
_APART = (
    "import sys; from vrag_kit.runner.embedding_elsewhere import embed_apart;"
    " embed_apart(*sys.argv[1:])"
)


def embed_elsewhere(file: Path, cluster: str, *, only: Sequence[str] = ()) -> None:
    """Embed every corpus that the notebooks of a file search by vectors, by the workers
    of a cluster: "local:2", or the address of a Dask scheduler.

    They share the project's folder. A part whose worker dies goes to another one; finished
    shards are kept in every case. Prints what is there in the end, as the disk says. Raises
    `VragError` as `embed_parameters`, when a part came to no end, after all others, and when
    a vector is not there.
    """
    file = file.absolute()
    corpora = list(corpora_of(file, only))
    shards = max(-(-len(corpus.documents) // SHARD) for corpus in corpora)
    folder = read_plan(file).folder / "embedding"
    with (
        alone(folder / ".lock", f"vrag embed {file} --cluster"),
        open_cluster(read_cluster(cluster, "--cluster")) as opened,
    ):
        count = min(shards, _A_WORKER * (opened.slots or _WORKERS))
        _hand_out(Afar(opened), folder, file, count, only)
    status = embedding_status(corpora)
    print(*status.lines, sep="\n", flush=True)
    if status.lacking:
        raise VragError(
            f"{status.lacking:,} documents have no vector, though all parts are done: see above,"
            " and run the same command again, which embeds those alone."
        )


def _hand_out(hands: Afar, folder: Path, file: Path, count: int, only: Sequence[str]) -> None:
    """Have all parts made; raises `VragError` that counts those that were not. Where we
    are stopped, nothing is said of those that were under way.
    """
    print(f"{count} parts: {hands.begins}", flush=True)
    faults: list[str] = []

    def embed(number: int) -> None:
        part = Part(number, count)
        output = folder / f"{number}_of_{count}"
        try:
            fault = hands.done(embed_there, file, part, tuple(only), output)
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


def embed_there(us: Employer, file: Path, part: Part, only: Sequence[str], output: Path) -> str:
    """On a worker: embed a part in a process of its own, which ends when this one does;
    `output`: where its log is, without ".log". Returns why it was not made, "" when it was.

    Raises `VragError` as `crew_of` does.
    """
    fault = output.with_suffix(".fault")
    fault.unlink(missing_ok=True)
    command = [sys.executable, "-c", _APART, str(file), f"{part.number}/{part.of}", str(fault)]
    name = f"part {part.number}/{part.of}"
    status = attend([*command, *only], name, output, crew_of(us))
    if fault.is_file():
        return fault.read_text(encoding="utf-8")
    return f"its process ended with {status}; see {output.with_suffix('.log')}" if status else ""


def embed_apart(file: str, part: str, fault: str, *only: str) -> None:
    """In a process that a worker has started: embed a part, or tell `fault` why not."""
    go_first()
    try:
        embed_parameters(Path(file), read_part(part), only)
    except VragError as error:
        write_file(Path(fault), str(error))
        sys.exit(f"error: {error}")
