"""Questions in the Field Guide's words, for tests of the suite."""

from __future__ import annotations

import factories

from vrag_kit.types import Benchmark, Document, Query

ABOUT = {"domain": "moths", "hops": 1, "required_modality": "text"}
SPECIES = "Freckled Ashen Orchardcinder Moth (scientific name: Lividus britaensis)"


def guide(many: int = 8) -> Benchmark:
    """Questions about a species' colours, in the guide's words, on which one passage tells."""
    queries = []
    for number in range(many):
        part = ("hindwings", "belly")[number % 2]
        text = f"What is the main color of the {part} of {SPECIES}, which hides (no. {number})?"
        names = {"query_id": f"q{number}", "group": f"g{number // 2}"}
        queries.append(Query(text=text, answers=("red",), metadata=ABOUT, **names))
    gold = {query.query_id: {"t": 1} for query in queries}
    passage = Document(doc_id="t", text="It is red.")
    return factories.benchmark(queries, [passage], gold, name="guide")
