"""Hit rates of entities and of pages that tell the answer, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vrag_kit.benchmarks import entity_names
from vrag_kit.retrieval import make_run
from vrag_kit.retrieval.entity_hit_rate import entity_coverage, entity_hit_rate, hit_rate
from vrag_kit.types import Document, Query

KG = {}
for number, names in enumerate([["Talia ensis"], ["Talia osa", "Talia  Ensis"], ["Moth"]]):
    entities = [{"entity_name": name} for name in names]
    KG[f"kg-{number}"] = Document(doc_id=f"kg-{number}", metadata={"entities": entities})
ASKED = [
    Query(query_id="first", text="?", entity="Talia ensis", group="g"),
    Query(query_id="third", text="?", entity="moth"),
    Query(query_id="never", text="?", entity="Heron"),
    Query(query_id="nothing found", text="?", entity="Moth"),
    Query(query_id="unknown", text="?"),
]
RUN = make_run(
    (name, doc_id, score)
    for name in ("first", "third", "never", "unknown")
    for doc_id, score in (("kg-1", 0.9), ("kg-0", 1.0), ("kg-2", 0.8))
)


def test_an_entity_is_found_where_one_of_the_first_k_hits_shows_it() -> None:
    table = entity_hit_rate(RUN, ASKED, KG, entity_names, cutoffs=[1, 2, 3])
    assert set(table["metric"]) == {"hit_rate"}
    values = table.pivot(index="query_id", columns="k", values="value")
    assert values.loc["first"].tolist() == [1, 1, 1]
    assert values.loc["third"].tolist() == [0, 0, 1]
    assert values.loc["never"].tolist() == values.loc["nothing found"].tolist() == [0, 0, 0]
    assert "unknown" not in values.index
    covered = {"first": True, "third": True, "never": False, "nothing found": True}
    assert entity_coverage(ASKED, KG, entity_names) == covered


def test_a_page_that_tells_the_answer_is_found_and_an_unknown_one_has_no_value() -> None:
    asked: list[str] = []

    def relevance(pairs: Sequence[tuple[Query, Document]]) -> list[bool | None]:
        asked.extend(f"{query.query_id} {page.doc_id}" for query, page in pairs)
        known = {"kg-0": None, "kg-1": False, "kg-2": True}
        return [known[page.doc_id] for _, page in pairs]

    table = hit_rate(RUN, ASKED[:1], KG, relevance, cutoffs=[3, 1, 2])
    assert asked == ["first kg-0", "first kg-1", "first kg-2"]
    values = dict(zip(table["k"], table["value"], strict=True))
    assert values[3] == 1  # a page is known to tell it
    assert np.isnan([values[1], values[2]]).all()  # none is, and one is unknown
