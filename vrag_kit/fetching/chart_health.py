"""Check Chart-MRAG and collect every problem, without stopping at the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vrag_kit.benchmarks.chart_mrag import chart_images
from vrag_kit.benchmarks.chart_rows import (
    ChartRow,
    find_arrow_files,
    images_in_row,
    parse_row,
    parse_sentence,
    read_arrow_rows,
    row_warnings,
)
from vrag_kit.benchmarks.image_cache import image_filename
from vrag_kit.benchmarks.images import decode
from vrag_kit.benchmarks.rows import encoded_image
from vrag_kit.benchmarks.sources import hub_revision, read_lines
from vrag_kit.errors import VragError
from vrag_kit.types import Json

Finding = tuple[str, str, str, str]
"""kind, where, image, found"""

SENTENCES = "text_corpus.jsonl"
"""The file of sentences, in the checked folder or its parent folder."""


def check_charts(name: str, folder: Path, found: list[Finding]) -> Iterator[Json]:
    """Append the problems of Chart-MRAG to `found`; yields one row of counts."""
    walk = _Walk(name, folder, found)
    walk.walk()
    arrows = folder.glob("*.arrow")
    yield {"split": "", "revision": hub_revision(folder, arrows), **walk.counts}


class _Walk:
    """The rows and sentences in a folder; `walk` fills `found` and `counts`."""

    def __init__(self, name: str, folder: Path, found: list[Finding]) -> None:
        self.counts = {"questions": 0, "documents": 0, "labels": 0}
        self._name = name
        self._folder = folder
        self._found = found
        self._rows: list[tuple[ChartRow, list[str]]] = []
        self._seen: dict[str, str] = {}

    def walk(self) -> None:
        """Check every row and every sentence."""
        for where, values in self._values():
            self._look_at(values, where)
        charts = chart_images(self._rows)
        sentences = self._sentences()
        for row, _ in self._rows:
            for evidence in row.evidence:
                if evidence in charts or evidence in sentences:
                    self.counts["labels"] += 1
                elif evidence in row.charts:
                    self._note("missing", row.where, evidence, "no row tells its picture")
                elif sentences:
                    self._note("row", row.where, "", f"{evidence} is not in {SENTENCES}")
        self.counts["questions"] = len(self._rows)
        self.counts["documents"] = len(charts) + len(sentences)

    def _values(self) -> Iterator[tuple[str, Json]]:
        rows = self._folder / "rows" if (self._folder / "rows").is_dir() else self._folder
        try:
            for arrow in find_arrow_files(rows):
                yield from read_arrow_rows(arrow)
        except VragError as error:
            kind = "row" if "cannot be read" in str(error) else "missing"
            self._note(kind, "rows", "", str(error))

    def _look_at(self, values: Json, where: str) -> None:
        try:
            row = parse_row(values, where)
        except VragError as error:
            self._note("row", where, "", str(error))
            return
        before = self._seen.setdefault(row.row_id, where)
        if before != where:
            self._note("row", row.where, "", f"it came before, in {before}")
            return
        pictures = images_in_row(values)
        for each in pictures:
            try:
                decode(encoded_image(each), row.where)
            except VragError as error:
                self._note("damaged", row.where, "gt_chart", str(error))
        for oddity in row_warnings(row, len(pictures)):
            self._note("odd", row.where, "", oddity)
        self._rows.append((row, [image_filename(each) for each in pictures]))

    def _sentences(self) -> dict[str, str]:
        """Those that can be used."""
        beside = (self._folder / SENTENCES, self._folder.parent / SENTENCES)
        path = next((each for each in beside if each.is_file()), None)
        if path is None:
            words = f"expected {SENTENCES} beside the rows; `vrag fetch suite` fetches it"
            self._note("missing", SENTENCES, "", words)
            return {}
        found: dict[str, str] = {}
        for where, line in read_lines(path, "file of sentences"):
            try:
                doc_id, text = parse_sentence(line, where)
            except VragError as error:
                self._note("row", where, "", str(error))
                continue
            if found.setdefault(doc_id, text) != text:
                self._note("row", where, "", f"{doc_id!r} came before with another text")
        return found

    def _note(self, kind: str, where: str, image: str, words: str) -> None:
        place = f"{self._name} {where}".strip()
        self._found.append((kind, place, image, words.removeprefix(where).lstrip(": ")))
