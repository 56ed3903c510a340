"""Check a page benchmark and collect every problem, without stopping at the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from vrag_kit.benchmarks.images import decode
from vrag_kit.benchmarks.page_rows import (
    list_config,
    parse_label,
    parse_page,
    parse_query,
    query_warnings,
    read_config,
    splits_in,
)
from vrag_kit.benchmarks.rows import encoded_image
from vrag_kit.benchmarks.sources import hub_revision, shards_problem
from vrag_kit.errors import VragError
from vrag_kit.types import Json

Finding = tuple[str, str, str, str]
"""kind, where, image, found"""


def check_pages(name: str, folder: Path, found: list[Finding]) -> Iterator[Json]:
    """Append the problems of a page benchmark to `found`; yields counts for each split."""
    for split in splits_in(folder):
        walk = _Walk(f"{name} {split}".strip(), folder, split, found)
        walk.walk()
        revision = hub_revision(folder, walk.shards)
        yield {"split": split, "revision": revision, **walk.counts}


class _Walk:
    """One split of a page benchmark; `walk` fills `found` and `counts`."""

    def __init__(self, name: str, folder: Path, split: str, found: list[Finding]) -> None:
        self.counts = {"questions": 0, "documents": 0, "labels": 0}
        self.shards: list[Path] = []
        self._name = name
        self._folder = folder
        self._split = split
        self._found = found
        self._pages: dict[str, str] = {}  # id → where it came first
        self._queries: dict[str, str] = {}
        self._gold: set[str] = set()

    def walk(self) -> None:
        """Check every row of the three configs."""
        for where, row in self._rows("corpus"):
            self._look_at_page(row, where)
        for where, row in self._rows("queries"):
            self._look_at_query(row, where)
        others: dict[str, str] = {}
        for where, row in self._rows("qrels"):
            self._look_at_label(row, where, others)
        for query_id, where in self._queries.items():
            if query_id not in self._gold:
                self._note("odd", where, "", "no gold page")
        if others:
            first = next(iter(others.values()))
            words = f"labels of {len(others):,} questions that are not there, such as {first}"
            self._note("odd", "qrels", "", words)
        self.counts["questions"] = len(self._queries)
        self.counts["documents"] = len(self._pages)

    def _rows(self, config: str) -> Iterator[tuple[str, Json]]:
        shards: Sequence[Path] = ()
        try:
            shards = list_config(self._folder, config, self._split)
        except VragError as error:
            kind = "row" if "two revisions" in str(error) else "missing"
            self._note(kind, config, "", str(error))
        self.shards += shards
        if problem := shards_problem(shards) if shards else "":
            self._note("missing", config, "", problem)
        for shard in shards:
            try:
                yield from read_config([shard])
            except VragError as error:
                self._note("row", f"{config}/{shard.name}", "", str(error))

    def _look_at_page(self, row: Json, where: str) -> None:
        try:
            page = parse_page(row, where)
        except VragError as error:
            self._note("missing" if "no picture" in str(error) else "row", where, "", str(error))
            return
        if not self._is_new(page.doc_id, where, self._pages):
            return
        try:
            decode(encoded_image(page.picture), page.where)
        except VragError as error:
            self._note("damaged", where, page.doc_id, str(error))

    def _look_at_query(self, row: Json, where: str) -> None:
        try:
            query = parse_query(row, where)
        except VragError as error:
            self._note("row", where, "", str(error))
            return
        if not self._is_new(query.query_id, where, self._queries):
            return
        if query.problem:
            self._note("row", query.where, "", query.problem)
        for oddity in query_warnings(query):
            self._note("odd", query.where, "", oddity)

    def _look_at_label(self, row: Json, where: str, others: dict[str, str]) -> None:
        try:
            label = parse_label(row, where)
        except VragError as error:
            self._note("row", where, "", str(error))
            return
        if label.query_id not in self._queries:
            others.setdefault(label.query_id, label.where)
            return
        if label.doc_id not in self._pages:
            self._note("row", label.where, label.doc_id, "a page that is not in the corpus")
            return
        self.counts["labels"] += 1
        if label.label:
            self._gold.add(label.query_id)

    def _is_new(self, name: str, where: str, seen: dict[str, str]) -> bool:
        before = seen.setdefault(name, where)
        if before != where:
            self._note("row", where, "", f"{name!r} came before, in {before}")
        return before == where

    def _note(self, kind: str, where: str, image: str, words: str) -> None:
        place = f"{self._name} {where}".strip()
        self._found.append((kind, place, image, words.removeprefix(where).lstrip(": ")))
