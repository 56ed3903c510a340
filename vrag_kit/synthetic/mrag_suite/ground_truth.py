"""What every document of the drawn suite shows or tells, as the drawing knows it; and a
checker of claims that looks it up instead of looking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from vrag_kit.claims.verdicts import EntailmentRequest, Label
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.synthetic.mrag_suite.facts import Fact, relation
from vrag_kit.synthetic.mrag_suite.language import FieldGuideGrammar
from vrag_kit.types import DocId, Document

Shown = Mapping[DocId, tuple[Fact, ...]]
"""Document → what one knows who sees or reads it."""


def write_ground_truth(shown: Shown, path: Path) -> None:
    """Write what documents show, one JSON object a line."""
    lines = []
    for doc_id, facts in shown.items():
        told = [{k: v for k, v in asdict(fact).items() if v} for fact in facts]
        lines.append(json.dumps({"doc_id": doc_id, "shows": told}))
    write_file(path, "\n".join(lines) + "\n")


def read_ground_truth(path: Path) -> dict[DocId, tuple[Fact, ...]]:
    """What `write_ground_truth` wrote."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[str(row["doc_id"])] = tuple(Fact(**told) for told in row["shows"])
    return found


class OracleClaimChecker:
    """Says what documents say about claims from what was drawn; implements
    `ClaimChecker`.

    Of a document that is shown without its picture, by its caption or sidecar, counts
    what stands in these words. Words that are no document, such as an accepted answer,
    are read as the language reads them.
    """

    name = "truth of the drawing"
    fingerprint = ""

    def __init__(self, language: FieldGuideGrammar, shown: Shown) -> None:
        self._language = language
        self._shown = shown

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        """True labels; a claim that is not in the guide's language has none.

        Raises `VragError` for a picture that is not of the drawing.
        """
        labels = []
        for each in requests:
            facts = self._facts(each.item)
            labels.append(tuple(self._label(claim, facts) for claim in each.claims))
        return labels

    def _facts(self, item: Document) -> Sequence[Fact]:
        """What one knows who sees the item as it is."""
        shown = self._shown.get(item.doc_id)
        if item.image is None and item.text is not None:
            if shown is None:
                return self._language.facts(item.text)
            return [fact for fact in shown if _stands_in(fact.value, item.text)]
        if shown is None:
            raise VragError(
                f"document {item.doc_id!r} is none of the drawn suite, of which alone the truth is"
                " known. Check its claims by another checker."
            )
        return shown

    def _label(self, claim: str, facts: Sequence[Fact]) -> Label:
        fact = self._language.claim(claim)
        return None if fact is None else relation(fact, facts)


def _stands_in(value: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(value)}\b", text) is not None
