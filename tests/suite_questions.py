"""Questions in the Field Guide's words, for tests of the suite."""

from __future__ import annotations

import factories

from vrag_kit.types import Benchmark, Document, Query

SPECIES = "Freckled Ashen Orchardcinder Moth (scientific name: Lividus britaensis)"


def guide(many: int = 8) -> Benchmark:
    """Questions about a species' colours, in the guide's words, on which one passage tells."""
    queries = []
    for number in range(many):
        part = ("hindwings", "belly")[number % 2]
        text = f"What is the main color of the {part} of {SPECIES}, which hides (no. {number})?"
        about = {
            "group": f"g{number // 2}",
            "metadata": {"domain": "moths", "hops": 1, "required_modality": "text"},
        }
        queries.append(Query(query_id=f"q{number}", text=text, answers=("red",), **about))
    gold = {query.query_id: {"t": 1} for query in queries}
    return factories.benchmark(
        queries, [Document(doc_id="t", text="It is red.")], gold, name="guide"
    )
