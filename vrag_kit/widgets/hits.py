"""Search hits of a turn in HTML, by service and rank, kept or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, DocId, Document, JsonView
from vrag_kit.widgets.images import image_html

PATH = ("model", "draw", "sample")
"""Columns on which a rewritten query may depend, besides the turn."""
SIDE = 72
"""Longer side of a hit's image, in pixels."""
LONGEST = 400
"""Maximum number of characters of a text that are shown."""


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A document that a search returned."""

    document: Document
    score: float | None
    """Its similarity; None where the run has no score."""
    kept: bool
    """Whether it was in the context of the model."""
    relevant: bool
    """Whether the benchmark's qrels call it relevant."""


Hits = Mapping[str, Sequence[RetrievedDocument]]
"""Service → its hits, best first."""


class SearchHits:
    """Looks up the search hits of turns, by setting."""

    def __init__(self, benchmark: Benchmark, found: Mapping[str, pd.DataFrame]) -> None:
        """`found` maps each setting to its run."""
        self._benchmark = benchmark
        self._runs: dict[str, _Run] = {}
        for setting, run in found.items():
            require_columns(run, ["query_id", "doc_id", "rank"], "browse_conversations")
            self._runs[setting] = _Run(run)

    def hits_of_turn(self, turn: JsonView) -> Hits:
        """Return the hits of a row of turns.
        For a setting without a run, only the documents that the turn kept.
        """
        # after a failed turn a row may have none
        kept = turn["doc_ids"] if isinstance(turn["doc_ids"], tuple) else ()
        run = self._runs.get(turn["setting"])
        found = {} if run is None else run.of(turn)
        labels = self._benchmark.qrels.get(turn["query_id"], {})
        hits: dict[str, list[RetrievedDocument]] = {}
        for doc_id in dict.fromkeys([*found, *kept]):
            document = self._benchmark.corpus.get(doc_id) or Document(doc_id=doc_id)
            service = str(document.metadata.get("source", "search")).replace("_", " ")
            relevant = labels.get(doc_id, 0) > 0
            hit = RetrievedDocument(document, found.get(doc_id), doc_id in kept, relevant)
            hits.setdefault(service, []).append(hit)
        return hits


class _Run:
    """A run, to look up what was found for a turn."""

    def __init__(self, run: pd.DataFrame) -> None:
        self.run = run.sort_values("rank", kind="stable")
        self.keys = [*(name for name in PATH if name in run), "query_id"]
        self.places = self.run.groupby(self.keys, sort=False).indices

    def of(self, turn: JsonView) -> dict[DocId, float | None]:
        """Document → its score, best first."""
        path = [turn[name] for name in self.keys]
        rows = self.run.iloc[self.places.get(tuple(path) if len(path) > 1 else path[0], [])]
        scores = rows["score"] if "score" in rows else [None] * len(rows)
        return dict(zip(rows["doc_id"], scores, strict=True))


def hits_html(hits: Hits, before: Hits) -> str:
    """Return the hits of each service as HTML, folded, below a line that names the kept ones.
    A service with the same hits as `before` only says so.
    """
    parts = []
    for service, found in hits.items():
        kept = [_title(each.document) for each in found if each.kept]
        relevant = sum(each.relevant for each in found)
        right = f" ({relevant} relevant)" if relevant else ""
        count = f"{service}: {len(found)} found{right}, {len(kept)} kept"
        if before.get(service) == found:
            parts.append(f"<div>{escape(count)}, as in the turn before</div>")
            continue
        names = "; ".join(dict.fromkeys(kept))
        told = f"{count}: {_cut(names)}" if names else count
        items = "".join(_item(rank, each) for rank, each in enumerate(found, start=1))
        parts.append(
            f"<details><summary style='cursor:pointer'>{escape(told)}</summary>{items}</details>"
        )
    return "".join(parts)


def _item(rank: int, hit: RetrievedDocument) -> str:
    # imported here, for it brings the libraries that draw figures
    from vrag_kit.plotting.style import CLUE

    document = hit.document
    frame = CLUE if hit.relevant else "transparent"
    picture = "" if document.image is None else image_html(document.image, frame=frame, side=SIDE)
    near = "" if hit.score is None else f", {hit.score:.3g}"
    words = "<b>kept</b>" if hit.kept else "passed over"
    right = ", relevant" if hit.relevant else ""
    lines = [f"<div>{rank}. {words}{right}{near}</div>"]
    for name, told in _entries(document):
        lines.append(f"<div><b>{escape(name)}</b> {escape(_cut(told))}</div>")
    if url := _text(document.metadata.get("page_url")):
        lines.append(f"<div style='opacity:0.75'>{escape(_cut(url))}</div>")
    return (
        "<div style='display:flex;column-gap:8px;margin:6px 0 6px 16px'>"
        f"<div style='flex:none'>{picture}</div><div>{''.join(lines)}</div></div>"
    )


def _title(document: Document) -> str:
    return ", ".join(name for name, _ in _entries(document))


def _entries(document: Document) -> list[tuple[str, str]]:
    """What a document is about, and what it tells of that: the entities of a picture with
    their attributes, the title of a page with its snippet, else the document's name and
    text.
    """
    told = document.metadata
    if entities := told.get("entities"):
        return [
            (_text(each.get("entity_name")), _attributes(each.get("entity_attributes")))
            for each in entities
        ]
    snippet = _text(told.get("page_snippet")) or document.text or ""
    return [(_text(told.get("page_name")) or document.doc_id, snippet)]


def _attributes(attributes: object) -> str:
    if not isinstance(attributes, Mapping):
        return _text(attributes)
    return "; ".join(f"{name}: {value}" for name, value in attributes.items())


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _cut(text: str) -> str:
    """The text, or its beginning if it is long."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
