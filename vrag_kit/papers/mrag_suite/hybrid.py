"""Retrieval on all data sets of a suite: single retrievers, their fusion, and the contexts that are
shown of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.means import to_percent
from vrag_kit.config import Entry
from vrag_kit.generation.evidence_modes import GT_ONLY, evidence_modes, top_k_per_modality
from vrag_kit.retrieval import ORACLE, RANDOM_BASELINE
from vrag_kit.retrieval.hybrid import FUSED, Runs, score_by_modality, search_by_modality
from vrag_kit.types import MODALITIES, Benchmark, Context, DocId, ordered
from vrag_kit.workspace import Workspace

ALL = "all"
"""Name of all data sets pooled."""


def score_suite(
    datasets: Mapping[str, Benchmark], runs: Mapping[str, Runs], ks: Mapping[str, int]
) -> pd.DataFrame:
    """Concatenates the tables of `score_by_modality`, each modality at its own k of `ks`, with the
    column dataset first; ids and groups are unique across data sets. `runs` maps a data set to the
    runs of `search_by_modality`; one without runs is left out.
    """
    tables = []
    for name, found in runs.items():
        if found:
            scores = score_by_modality(datasets[name], found, cutoffs=sorted(set(ks.values())))
            scores = scores[scores["k"] == scores["modality"].map(ks)].assign(dataset=name)
            for column in ("query_id", "group"):
                scores[column] = f"{name}: " + scores[column].astype(str)
            tables.append(scores)
    return pd.concat(tables, ignore_index=True)


def fusion_gains(scores: pd.DataFrame) -> pd.DataFrame:
    """Computes the gain of fusion over each fused retriever, on the same questions, in points:
    retriever ("fused"), dataset, modality, metric, k, value, ci_low, ci_high, n, n_failed, p,
    baseline (the retriever), p_holm, unit.

    `scores` comes from `score_suite`. First each data set and modality; then, if there are several
    data sets, all together (dataset "all"), every question counting once. p_holm corrects a metric
    for all data sets, modalities and retrievers; the pooled rows are a separate family. Without a
    fused run there are no rows.
    """
    found = scores[~scores["retriever"].isin([RANDOM_BASELINE, ORACLE])]
    names = [name for name in found["retriever"].unique() if name != FUSED]
    pools = [found, found.assign(dataset=ALL)] if found["dataset"].nunique() > 1 else [found]
    by, tables = ["dataset", "modality", "metric", "k"], []
    for values, name in product(pools, names):
        pair = values[values["retriever"].isin([name, FUSED])]
        tables.append(paired_differences(pair, arm="retriever", by=by, baseline=name))
    gains = pd.concat(tables, ignore_index=True)
    families = gains.assign(is_pooled=gains["dataset"] == ALL)
    return to_percent(gains.assign(p_holm=holm_by_family(families, ["metric", "is_pooled"])))


_DEPTH = 20
"""Number of documents per modality that a search ranks, beyond gold ones where those are apart."""


@dataclass(frozen=True, slots=True)
class SuiteEvidence:
    """Builds the contexts of questions from gold evidence and from searches by modality."""

    retrievers: Mapping[str, Sequence[Entry]]
    """Retrievers of each modality, as in `search_by_modality`; several are fused."""
    k: Mapping[str, int]
    """Number of documents of a modality in a context, where a data set has it."""
    questions: int | None = None
    """Maximum number of questions per data set in `sample`; None: all that have gold evidence."""
    seed: int = 0
    """Seed of the sample of questions, and of the order of documents in `modes`."""
    at: Workspace = field(default_factory=Workspace)

    def searched(self, benchmark: Benchmark) -> list[Context]:
        """Returns one context per query with the first documents of each modality that the
        benchmark has (`top_k_per_modality`). Raises as `search_by_modality` does.
        """
        ranked, ks = self._search(benchmark, _DEPTH)
        return top_k_per_modality(benchmark, ranked, ks=ks)

    def gold(self, benchmark: Benchmark) -> list[Context]:
        """Returns contexts with gold documents only, in the order of the labels, at most k of each
        modality: one per query that has any, in the setting "gt_only".
        """
        contexts, k = [], sum(self.k.values())
        for query_id in filter(benchmark.relevant, benchmark.queries):
            shown: list[DocId] = []
            for modality in MODALITIES:
                gold = [
                    each
                    for each in benchmark.relevant(query_id)
                    if benchmark.corpus[each].modality == modality
                ]
                shown += gold[: self.k[modality]]
            contexts.append(Context(query_id=query_id, setting=GT_ONLY, k=k, doc_ids=tuple(shown)))
        return contexts

    def sample(self, benchmark: Benchmark) -> Benchmark:
        """Samples questions with gold evidence; a larger sample contains a smaller one."""
        there = [each for each in benchmark.queries if benchmark.relevant(each)]
        return benchmark.subset(ordered(there, self.seed, "in modes")[: self.questions])

    def modes(self, benchmark: Benchmark) -> list[Context]:
        """Returns the contexts of the questions of `sample` in the modes of `evidence_modes`, over
        the data set's modalities; distractors are the best ranked of all its documents. Raises
        `VragError` as `evidence_modes` and `search_by_modality` do.
        """
        few = self.sample(benchmark)
        most = max((len(few.relevant(each)) for each in few.queries), default=0)
        ranked, ks = self._search(benchmark, most + max(_DEPTH, *self.k.values()))
        return evidence_modes(few, ranked, ks=ks, seed=self.seed)

    def _search(
        self, benchmark: Benchmark, depth: int
    ) -> tuple[dict[str, pd.DataFrame], dict[str, int]]:
        """Modality → its last run, which is the fused one of several; modality → k."""
        runs = search_by_modality(benchmark, self.retrievers, k=depth, at=self.at)
        ranked = {modality: list(by_name.values())[-1] for modality, by_name in runs.items()}
        return ranked, {name: self.k[name] for name in ranked if self.k.get(name, 0) > 0}
