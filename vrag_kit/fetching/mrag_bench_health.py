"""Check MRAG-Bench's files: a table of unusable rows, truncated shards, missing or damaged
images, and oddities.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.images import decode, list_images
from vrag_kit.benchmarks.mrag_bench import corpus_folder
from vrag_kit.benchmarks.mrag_bench_matching import MatchedRows, match
from vrag_kit.benchmarks.mrag_bench_rows import (
    MragRow,
    list_shards,
    parse_row,
    read_shard_rows,
    row_warnings,
)
from vrag_kit.benchmarks.shards import shards_problem
from vrag_kit.errors import VragError
from vrag_kit.fetching.health import FINDING_COLUMNS, KINDS, Finding
from vrag_kit.fetching.images import inspect_images
from vrag_kit.log import track

ROWS = 1353
"""Number of rows in the published data set."""
PUBLISHED = {
    "angle": 322,
    "partial": 246,
    "scope": 102,
    "occlusion": 108,
    "temporal": 149,
    "deformation": 102,
    "incomplete": 102,
    "biological": 102,
    "others": 120,
}
"""Questions of each scenario (Hu et al., ICLR 2025, Figure 3 and Table 3)."""


def check_mrag_bench(rows: Path | str, corpus: Path | str | None = None) -> pd.DataFrame:
    """Check MRAG-Bench's rows and corpus; returns one row per finding, empty without any.

    Columns and kinds are those of `check_visual_rag`. Faults are `row`: a row that
    `load_mrag_bench` would refuse, a duplicate id, a truncated shard; `missing`: shards, and
    ids between the first and the last; `damaged`: an image of a row or of the corpus that
    cannot be decoded. Odd, and no faults: equal options, a number of ground-truth images
    other than five (Incomplete: one), a ground-truth image that occurs twice or is the
    query's, an image of a row that is not in the corpus (Partial's queries are crops, and
    never are), files of the corpus that are the same, and the oddities of single images; in
    a data set of 1,353 rows also a number of questions in a scenario that differs from the
    published one.

    Raises `VragError` if there are no shards, or no corpus at the given place.
    """
    folder = corpus_folder(corpus) if corpus else None
    shards = list_shards(rows)
    found: list[Finding] = []
    if problem := shards_problem(shards):
        found.append(("missing", str(shards[0].parent), "", problem))
    reading = _Reading(found)
    with tempfile.TemporaryDirectory() as store:
        matched = match(reading.good_rows(shards), folder, Path(store))
    found += _gaps(reading.ids)
    found += _counts(reading.scenarios)
    if folder:
        found += _not_there(matched)
        names = [path.name for path in list_images(folder)]
        results = inspect_images(names, folder)
        for name, findings in track(results, folder.name, len(names), "pictures"):
            found += [(kind, "corpus", name, text) for kind, text in findings]
    ordered = sorted(found, key=lambda finding: KINDS.index(finding[0]))
    return pd.DataFrame(ordered, columns=FINDING_COLUMNS)


class _Reading:
    """A walk over all shards that notes what is wrong and passes on what is not."""

    def __init__(self, found: list[Finding]) -> None:
        self.ids: dict[str, str] = {}  # id → where it came first
        self.scenarios: Counter[str] = Counter()
        self._found = found

    def good_rows(self, shards: list[Path]) -> Iterator[MragRow]:
        """Yield the usable rows."""
        for path in shards:
            try:
                for where, values in read_shard_rows(path):
                    if row := self._good(where, values):
                        yield row
            except VragError as error:
                self._found.append(("row", path.name, "", str(error)))

    def _good(self, where: str, values: dict[str, object]) -> MragRow | None:
        try:
            row = parse_row(values, where)
        except VragError as error:
            self._found.append(("row", where, "", str(error).removeprefix(f"{where}: ")))
            self.ids.setdefault(str(values.get("id")), where)
            return None
        if row.id in self.ids:
            before = f"id {row.id!r} came before, in {self.ids[row.id]}"
            self._found.append(("row", where, "", before))
            return None
        self.ids[row.id] = where
        self.scenarios[row.scenario] += 1
        self._found += [("odd", row.where, "", oddity) for oddity in row_warnings(row)]
        return row if self._decodes(row) else None

    def _decodes(self, row: MragRow) -> bool:
        """Whether all pictures of a row can be opened."""
        pictures = [("image", row.image)]
        pictures += [(f"gt_images {i}", data) for i, data in enumerate(row.gt_images)]
        pictures += [(f"retrieved_images {i}", data) for i, data in enumerate(row.retrieved_images)]
        good = True
        for column, data in pictures:
            try:
                decode(data, f"{row.where} {column}")
            except VragError as error:
                self._found.append(("damaged", row.where, column, str(error)))
                good = False
        return good


def _gaps(ids: dict[str, str]) -> list[Finding]:
    """Ids that are missing between 0 and the last."""
    numbers = {int(each) for each in ids if each.isdecimal()}
    gaps = [number for number in range(max(numbers, default=-1)) if number not in numbers]
    if not gaps:
        return []
    shown = ", ".join(map(str, gaps[:5])) + (", …" if gaps[5:] else "")
    return [("missing", "ids", "", f"{len(gaps):,} of {max(numbers) + 1:,}: {shown}")]


def _counts(scenarios: Counter[str]) -> list[Finding]:
    """Scenarios of other sizes than published, of a data set as large as that one."""
    if scenarios.total() != ROWS:
        return []
    return [
        ("odd", name, "", f"{scenarios[name]} questions, published are {count}")
        for name, count in PUBLISHED.items()
        if scenarios[name] != count
    ]


def _not_there(matched: MatchedRows) -> list[Finding]:
    """Pictures of rows that no file of the corpus shows, and files that are the same."""
    written = set(matched.written)
    found: list[Finding] = []
    for row in matched.rows:
        if row.image in written:
            found.append(("odd", row.where, "image", "the query's picture is not in the corpus"))
        for column, names in (("gt_images", row.gt_images), ("retrieved", row.retrieved_images)):
            lost = sum(name in written for name in names)
            if lost:
                found.append(("odd", row.where, column, f"{lost} pictures not in the corpus"))
    found += [("odd", "corpus", name, "the bytes of an earlier file") for name in matched.copies]
    return found
