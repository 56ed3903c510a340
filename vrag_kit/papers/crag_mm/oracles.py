"""What answers are lost to: the same arm again, told by the data what it would otherwise
have to find out (ours).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from vrag_kit.analysis import conversation_values, summarise
from vrag_kit.errors import VragError
from vrag_kit.order import ordered
from vrag_kit.papers.crag_mm.arms import Arms
from vrag_kit.papers.crag_mm.stop_rule import two_not_right
from vrag_kit.retrieval import AroundService, marked_region, with_regions
from vrag_kit.types import Benchmark, DocId, Query

AS_IT_IS = "as it is"
REGION = "told the region"
ENTITY = "told the entity"
QUERY = "told the query"
ALL = "told entity and query"
ORACLES = (AS_IT_IS, REGION, ENTITY, QUERY, ALL)
"""An arm as it is; searching with the marked region of its picture; shown the entries of
the asked entity, and nothing else of the graph; searching the web for the reference query;
the last two together.
"""
LADDER = (AS_IT_IS, REGION, ENTITY, ALL)
"""Each is told more than the one before."""
PARTS = (
    "where to look: won back by the region, net",
    "what it is: won back by the entity, net",
    "what to ask the web: won back by the query, net",
    "lost with all of them: not told there, or misread",
)
"""What is lost, step by step of `LADDER`, and behind it."""
IN_VAIN = "nothing of these"
SURE = 2.0
"""The score of an entry that the data name: above any threshold."""


class KnownEntities(AroundService):
    """An image search that finds the entries of the asked entity, whatever the picture;
    implements `SearchService`.
    """

    @property
    def name(self) -> str:
        """The service's, "told the entity"."""
        return f"{self.service.name}-told-the-entity"

    @property
    def fingerprint(self) -> str:
        """Another than the service's, as it finds other documents."""
        return f"{self.service.fingerprint}-told-the-entity"

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """The first `k` entries of each query's entity; none where the graph lacks it, or
        the data do not name it.
        """
        of_entity: dict[str, list[DocId]] = {}
        for doc_id, document in self.corpus.items():
            for each in document.metadata.get("entities", ()):
                of_entity.setdefault(_plain(each["entity_name"]), []).append(doc_id)
        rows = []
        for query in queries:
            known = of_entity.get(_plain(query.entity), []) if query.entity else []
            rows += [
                (query.query_id, doc_id, rank, SURE)
                for rank, doc_id in enumerate(known[:k], start=1)
            ]
        return pd.DataFrame(rows, columns=["query_id", "doc_id", "rank", "score"])


def some_questions(benchmark: Benchmark, count: int, *, seed: int = 0) -> Benchmark:
    """The benchmark with `count` of its single questions, or whole conversations, at
    random; all when it is 0. For what is asked several times over: an arm with every
    oracle, or with other pictures.
    """
    groups = ordered(dict.fromkeys(benchmark.groups.values()), seed, "oracles")
    wanted = set(groups[: count or None])
    return benchmark.subset([name for name, group in benchmark.groups.items() if group in wanted])


def with_oracles(arms: Arms, *, margin: float = 0.0) -> dict[str, Arms]:
    """Each of `ORACLES` → the arms so told; the region with a `margin` on each side, as
    `with_regions` takes it. Raises `VragError` without an image search.
    """
    if arms.images is None:
        raise VragError(
            "with_oracles: the arms have no image search, so there is nothing to tell it. Name an"
            " image_service."
        )
    region = with_regions(arms.images, marked_region, margin=margin)
    entity = KnownEntities(arms.images)
    given = replace(arms, rewrite="given", rewriter=None)
    return {
        AS_IT_IS: arms,
        REGION: replace(arms, images=region),
        ENTITY: replace(arms, images=entity),
        QUERY: given,
        ALL: replace(given, images=entity),
    }


def truth_budget(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Points of truthfulness lost in each of `PARTS`: model, part, metric ("lost"), value,
    ci_low, ci_high, n, n_failed, in [−2, 2]; they add up to 1 − truthfulness.

    `judged` are one arm's answers with each of `ORACLES` as their setting. The first parts
    are differences of two answers and may be negative: chance, which helps either alike,
    cancels in the mean. A question, or conversation, without a score in one of `LADDER`
    is left out of all parts, and counted.
    """
    values = conversation_values(judged, benchmark, two_not_right, by=["model", "setting"])
    keys = ["model", "query_id", "group"]
    wide = values.pivot(index=keys, columns="setting", values="value").reset_index()
    if missing := [step for step in LADDER if step not in wide]:
        raise VragError(
            f"truth_budget: there are no answers with the setting {missing[0]!r}. Ask with each of"
            " with_oracles(arms)."
        )
    steps = [wide[step] for step in LADDER] + [pd.Series(1.0, wide.index)]
    known = wide[list(LADDER)].notna().all(axis=1)
    tables = []
    for part, before, after in zip(PARTS, steps[:-1], steps[1:], strict=True):
        tables.append(wide[keys].assign(part=part, value=(after - before).where(known)))
    rows = pd.concat(tables, ignore_index=True).assign(metric="lost", worst=-2.0, best=2.0)
    return summarise(rows, ["model", "part", "metric"])


def lost_to(judged: pd.DataFrame) -> pd.DataFrame:
    """What sets each answer right that is not: rows (model, how it fails: "missing" or
    "wrong"), a column for the first of `ORACLES` with which the same question is right,
    and `IN_VAIN`; counts of questions.

    Some of these would come right by chance, so counts flatter what helps;
    `truth_budget` has the net.
    """
    keys = ["model", "query_id"]
    wide = judged.pivot(index=keys, columns="setting", values="score")
    wide = wide[wide.notna().all(axis=1)]
    asked = [name for name in ORACLES if name in wide]
    failing = wide[wide[AS_IT_IS] <= 0]
    right = (failing[asked] > 0).to_numpy(bool)
    first = np.where(right.any(axis=1), right.argmax(axis=1), len(asked))
    names = np.array([*asked, IN_VAIN])
    how = np.where(failing[AS_IT_IS] < 0, "wrong", "missing")
    table = pd.crosstab([failing.index.get_level_values("model"), how], names[first])
    table.index.names, table.columns.name = ["model", "it is"], "set right by"
    return table.reindex(columns=[*asked[1:], IN_VAIN], fill_value=0)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()
