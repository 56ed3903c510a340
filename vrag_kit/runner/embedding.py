"""Embedding what the notebooks of a parameter file search, apart from running them: all
of it or a part, so that many machines can share it; and saying what is there.

The notebooks' cells are run up to their searches, as `foresight` runs them: their
folders are thrown away, and no model is asked.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from vrag_kit.errors import VragError
from vrag_kit.forecast import forecasting
from vrag_kit.retrieval.corpora import Corpus
from vrag_kit.retrieval.embedding import columns_of, embed_part, space_of
from vrag_kit.retrieval.keeping import WHOLE, Columns, Part
from vrag_kit.retrieval.manifests import documents_folder
from vrag_kit.retrieval.shards import VectorSpace
from vrag_kit.retrieval.stored import damaged_below, folders_below, stored_of
from vrag_kit.runner.foresight import executed, harmless, in_own_folders
from vrag_kit.runner.parameters import RUN_WITH, WITHIN, declared
from vrag_kit.runner.plan import name_of, narrowed, read_plan
from vrag_kit.runner.values import SEARCHING

_NAMES = {*SEARCHING, *(WITHIN[name] for name in SEARCHING if name in WITHIN)}
"""Parameters of notebooks that search by vectors."""


def read_part(text: str) -> Part:
    """ "3/8" as a part, "" as the whole; raises `VragError` for anything else."""
    if not text:
        return WHOLE
    numbers = [int(each) for each in text.split("/") if each.isdecimal()]
    if len(numbers) == text.count("/") + 1 == 2 and 1 <= numbers[0] <= numbers[1]:
        return Part(*numbers)
    raise VragError(f"--part is {text!r}; expected i/n with i from 1 to n, such as 3/8.")


def embed_parameters(file: Path, part: Part, only: Sequence[str]) -> None:
    """Embed a part of every corpus that the notebooks search by vectors.

    Raises `VragError` as `embed_documents` does, and where nothing is searched.
    """
    seen: set[tuple[Path, str]] = set()
    for corpus in corpora_of(file, only):
        encoder = corpus.open()
        place = documents_folder(encoder, corpus.root)
        told = place, columns_of(encoder, corpus.documents).digest()
        if told not in seen:
            seen.add(told)
            embed_part(encoder, corpus.documents, corpus.root, part)


class Status(NamedTuple):
    """What is there of what notebooks search, as the disk says."""

    lines: list[str]
    """To print."""
    lacking: int
    """Documents without a vector; those that several retrievers lack count for each."""


def embedding_status(corpora: Iterable[Corpus]) -> Status:
    """What is there of what notebooks search; damaged shards of it are set aside."""
    lines: list[str] = []
    lacking = 0
    found: dict[Path, list[Columns]] = defaultdict(list)
    spaces: dict[Path, VectorSpace] = {}
    roots: set[Path] = set()
    for corpus in corpora:
        roots.add(Path(corpus.root))
        encoder = corpus.known()
        if encoder is None:
            line = f"{corpus.entry}: nothing of {len(corpus.documents):,} documents"
            if line not in lines:
                lines.append(line)
                lacking += len(corpus.documents)
        else:
            folder = documents_folder(encoder, corpus.root)
            found[folder].append(columns_of(encoder, corpus.documents))
            spaces[folder] = space_of(encoder)
    stored = [stored_of(folder, columns, spaces[folder]) for folder, columns in found.items()]
    lines += map(str, stored)
    lacking += sum(each.wanted - each.there for each in stored)
    for root in sorted(roots):
        others = [folder for folder in folders_below(root) if folder not in found]
        lines += [f"not of these parameters: {stored_of(folder, [])}" for folder in others]
        lines += filter(None, [damaged_below(root)])
    return Status(lines, lacking)


def corpora_of(file: Path, only: Sequence[str]) -> Iterator[Corpus]:
    """What the notebooks of a file, or those of `only` (`narrowed`), search by vectors,
    notebook by notebook.
    """
    any_found = False
    why = ""
    read: dict[tuple[object, ...], object] = {}
    (plan,) = narrowed([read_plan(file)], only)
    for notebook, given in plan.given.items():
        settings = {**declared(notebook), **given}
        if not settings.keys() & _NAMES:
            continue
        with tempfile.TemporaryDirectory() as scratch, forecasting(Path(scratch)) as forecast:
            forecast.asks = False
            forecast.known = read
            told = harmless(settings, Path(scratch))
            if RUN_WITH in settings:
                told[RUN_WITH] = settings[RUN_WITH]
            fault = executed(notebook, told, forecast.models)[1]
            corpora = [each for each in forecast.corpora if isinstance(each, Corpus)]
        if fault and not corpora:
            words = in_own_folders(fault.words, settings, Path(scratch))
            why = why or f" {name_of(notebook)}, code cell {fault.cell}: {words}"
        any_found = any_found or bool(corpora)
        yield from corpora
    if not any_found:
        raise VragError(f"{file}: no notebook of it comes to a search by vectors.{why}")
