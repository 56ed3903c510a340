"""The synthetic editions by name: generating one into a folder once, opening one or real rows, and
the mark of what is synthetic.

`edition.json` in the folder says which edition it holds and by which `VERSION` of the generators,
and is complete once all is written.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from joblib import cpu_count

from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import NotGeneratedError, VragError, did_you_mean
from vrag_kit.files import display_path, lock_folder, project_path, write_file
from vrag_kit.log import logger
from vrag_kit.types import Json

VERSION = 1
"""Version of all generators. Raise it when bytes change, which the manifest of the tests shows:
folders of another version are then generated again.
"""
NOTE = "edition.json"
Source = str | Mapping[str, str]
"""A synthetic edition by name, or a mapping of real files."""
DRAWN = {"field-guide": "full", "field-guide-small": "small"}
"""Name of an edition of the Field Guide → "full" or "small"; its folder is data/<name>."""
DRAWN_MRAG = {"field-guide-mrag-bench": "full", "field-guide-mrag-bench-small": "small"}
"""The same of MRAG-Bench."""
CRAG_MM_EDITIONS = {"field-guide-crag-mm": "full", "field-guide-crag-mm-small": "small"}
"""The same of CRAG-MM."""
DRAWN_SUITE = {"field-guide-mrag-suite": "full", "field-guide-mrag-suite-small": "small"}
"""The same of MRAG-Suite."""
EVERY_EDITION = (*DRAWN, *DRAWN_MRAG, *CRAG_MM_EDITIONS, *DRAWN_SUITE)


def expected(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown name: the known ones, and what may be meant."""
    return f"expected one of {', '.join(map(repr, known))}.{did_you_mean(name, known)}"


def generate_once(
    benchmark: str,
    edition: str,
    editions: Mapping[str, Any],  # Any: each benchmark has its own dataclass of sizes
    folder: Path | str,
    draw: Callable[[str, Path], None],
    outputs: Sequence[str],
    **note: object,
) -> Path:
    """Return `folder`, which then holds an edition of `benchmark` ("field-guide-crag-mm").

    `draw(edition, folder)` is called unless it does, by one process at a time; it may go on with
    what an interrupted call wrote. `outputs` are the folders that it fills; those of another
    edition or version are removed first. `note` is recorded beside the edition.

    Raises `VragError` for an unknown edition, for a folder that cannot be written or has such
    folders with other content, and in a script that generates without
    `if __name__ == "__main__":`; `NotGeneratedError` in a dry run that counts model calls, for the
    full edition, which takes minutes.
    """
    if edition not in editions:
        raise VragError(f"{benchmark} has no edition {edition!r}; {expected(edition, editions)}")
    folder = Path(folder)
    note = {"edition": edition, **asdict(editions[edition]), "drawn_by": VERSION, **note}
    begun = {**json.loads(json.dumps(note)), "complete": False}
    done = {**begun, "complete": True}
    if read_note(folder) == done:
        return folder
    _refuse_in_dry_run(benchmark, edition, folder)
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise VragError(  # else this process would wait for the lock of its parent for ever
            "a process that draws has run this script from its top; put the code that generates"
            ' data below `if __name__ == "__main__":`.'
        )
    try:
        with lock_folder(folder):
            if read_note(folder) != done:
                _clear(folder, outputs, begun)
                write_file(folder / NOTE, json.dumps(begun, indent=1))
                draw(edition, folder)
                write_file(folder / NOTE, json.dumps(done, indent=1))
    except OSError as error:
        raise VragError(
            f"{folder}: {benchmark} cannot be drawn there ({error.strerror or error}). Choose a"
            " folder with write access and free space."
        ) from error
    return folder


def read_note(folder: Path) -> Json:
    """Return the note of a folder; empty if there is none."""
    try:
        return dict(json.loads((folder / NOTE).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}


def _clear(folder: Path, outputs: Sequence[str], begun: Json) -> None:
    """Remove the outputs of another edition or version."""
    existing = [folder / name for name in outputs if (folder / name).exists()]
    before = read_note(folder)
    if existing and not before:
        raise VragError(
            f"{folder}: holds {existing[0].name!r}, which was not drawn by this kit. Choose another"
            " folder."
        )
    if existing and before != begun:
        logger.info(f"{folder}: another edition or version; it is generated again")
        for path in existing:
            shutil.rmtree(path)


def _refuse_in_dry_run(benchmark: str, edition: str, folder: Path) -> None:
    current = current_dry_run()
    place = display_path(folder)
    if current is None or not current.asks:
        return
    if edition == "full":
        raise NotGeneratedError(
            f"{place} is not drawn yet, or by older code. The run draws it, which takes minutes;"
            f" `vrag data generate {benchmark} {place}` does now, and then calls are counted."
        )
    logger.warning(f"{place} was not drawn yet, and is now")


def edition_or_rows(
    parameter: str,
    name: str,
    editions: Mapping[str, str],
    generate: Callable[[str, Path], Path],
    beside: str = "",
) -> tuple[Path | str, bool]:
    """Return (folder, True) of the edition of this name in `editions`, which is generated in
    data/<name> if it is missing; or (rows, False): the folder that `name` names, as parameters give
    paths, or else the name as a data set of the hub ("<owner>/<name>").

    Raises `VragError` for a name that can be none of these, and for `beside`, the value of another
    parameter, next to an edition, which has all data of its own; `parameter` begins the message.
    """
    if name in editions and beside:
        raise VragError(
            f"{beside!r} is named beside {name!r}, which has a corpus of its own, pictures and"
            ' indexes of its own; expected "".'
        )
    if name in editions:
        return generate(editions[name], project_path(f"data/{name}")), True
    if name and project_path(name).is_dir():
        return project_path(name), False
    if "/" in name:
        return name, False
    raise VragError(
        f"{parameter} is {name!r}; expected {' or '.join(map(repr, editions))}, a folder of rows,"
        f" or a data set of the hub (<owner>/<name>).{did_you_mean(name, editions)}"
    )


def synthetic_mark(about: str | Mapping[str, Any] | Sequence[Any]) -> str:
    """The mark of figures drawn from `about`, a notebook's parameter (data, a model, a retriever, a
    file of labels, or a list of such): "synthetic data" if any names an edition of the Field Guide,
    or a file or folder that comes with the kit (weights, labels, logs of annotators), else "".
    """
    several = isinstance(about, Sequence) and not isinstance(about, str)
    shipped = Path(__file__).parent.resolve()
    for each in about if several else [about]:
        name = each.get("model") if isinstance(each, Mapping) else each
        if name in EVERY_EDITION:
            return "synthetic data"
        if isinstance(name, str) and name and project_path(name).resolve().is_relative_to(shipped):
            return "synthetic data"
    return ""


def generate_edition(edition: str, folder: Path | str) -> str:
    """Generate "field-guide", "field-guide-mrag-bench", "field-guide-crag-mm",
    "field-guide-mrag-suite", or one of these with "-small", unless it exists; returns a line that
    says where it is. The Field Guide that a suite needs is generated in the project's data.

    Raises `VragError` for an unknown edition, and as the generators do.
    """
    from vrag_kit.synthetic.crag_mm.drawing import generate_crag_mm
    from vrag_kit.synthetic.mrag_bench.drawing import generate_mrag_bench
    from vrag_kit.synthetic.mrag_suite.opening import generate_suite
    from vrag_kit.synthetic.visual_rag.guide import generate_field_guide

    generators = (
        (DRAWN, generate_field_guide),
        (DRAWN_MRAG, generate_mrag_bench),
        (CRAG_MM_EDITIONS, generate_crag_mm),
        (DRAWN_SUITE, generate_suite),
    )
    for names, generate in generators:
        if edition in names:
            return f"{edition} is in {generate(names[edition], folder)}"
    raise VragError(f"unknown edition {edition!r}; {expected(edition, EVERY_EDITION)}")


def worker_pool(n: int | None = None) -> ProcessPoolExecutor:
    """Create a pool of n spawned processes, which share no state and end with this one; by default
    as many as there are usable cores.
    """
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(n or cpu_count(), mp_context=spawn, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this worker as soon as its parent ends for any reason: it would otherwise wait for work
    forever and keep its memory.
    """
    threading.Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
