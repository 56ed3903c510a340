"""Check WebQA's files: rows, evidence, and the lines of images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from vrag_kit.benchmarks.webqa_facts import facts, read_image, read_snippet
from vrag_kit.benchmarks.webqa_images import TsvFile
from vrag_kit.benchmarks.webqa_rows import WebQARow, check_row, read_annotations
from vrag_kit.errors import VragError
from vrag_kit.types import Json

Finding = tuple[str, str, str, str]
"""kind, where, image, found"""

ANNOTATIONS = "WebQA_train_val.json"
"""The annotation file."""


def check_webqa(name: str, folder: Path, found: list[Finding]) -> Iterator[Json]:
    """Append the problems of WebQA's rows to `found`; yields counts for each split. The lines of
    images are checked too if imgs.tsv is in the folder.
    """
    walk = _Walk(name, folder, found)
    try:
        rows = read_annotations(folder / ANNOTATIONS)
    except VragError as error:
        walk.note("row", ANNOTATIONS, str(error))
        return
    for guid, row in rows.items():
        walk.look_at(guid, row)
    for split, counts in walk.counts.items():
        documents = len(walk.documents[split])
        yield {"split": split, "revision": "", **counts, "documents": documents}


class _Walk:
    """The rows of a file; fills `found`, `counts` and `documents`."""

    def __init__(self, name: str, folder: Path, found: list[Finding]) -> None:
        self.counts: dict[str, dict[str, int]] = {}  # split → what it holds
        self.documents: dict[str, set[str]] = defaultdict(set)  # split → ids
        self._name = name
        self._found = found
        self._pictures: TsvFile | None = None
        if (folder / "imgs.tsv").is_file():
            try:
                self._pictures = TsvFile(folder / "imgs.tsv")
            except VragError as error:
                self.note("missing", "imgs.tsv", str(error))

    def look_at(self, guid: str, row: WebQARow) -> None:
        """Check one question."""
        where = f"question {guid!r}"
        split = str(row.get("split"))
        counts = self.counts.setdefault(split, {"questions": 0, "documents": 0, "labels": 0})
        try:
            check_row(guid, row, where, texts=True)
            evidence = self._evidence(guid, row, where)
        except VragError as error:
            self.note("row", where, str(error))
            return
        if not (row["img_posFacts"] or row["txt_posFacts"]):
            self.note("odd", where, "no gold evidence")
        counts["questions"] += 1
        counts["labels"] += len(evidence)
        self.documents[split].update(evidence)

    def _evidence(self, guid: str, row: WebQARow, where: str) -> list[str]:
        """The documents that a question names."""
        found = [read_snippet(fact, guid, {}).doc_id for fact in facts(row, "txt", where)]
        for fact in facts(row, "img", where):
            image_id, _ = read_image(fact)
            found.append(str(image_id))
            if self._pictures:
                try:
                    self._pictures.image(image_id, fact.where)
                except VragError as error:
                    self.note("missing", where, str(error))
        return list(dict.fromkeys(found))

    def note(self, kind: str, where: str, words: str) -> None:
        """Add a finding."""
        place = f"{self._name} {where}".strip()
        self._found.append((kind, place, "", words.removeprefix(where).lstrip(":, ")))
