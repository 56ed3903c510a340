"""Short answers in the modes of evidence, each data set by its own metric (Table 5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.means import mean_scores, per_query
from vrag_kit.analysis.report_tables import NOTHING, report_table
from vrag_kit.analysis.strata import ALL, expand_strata, trained_groups
from vrag_kit.config import Entry
from vrag_kit.generation.evidence_modes import GT_ONLY, MODES, evidence_modes, top_k_per_modality
from vrag_kit.generation.experiment import ask_models
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.judging import Judge, judge_answers
from vrag_kit.papers.mrag_suite.datasets import dataset_metric, metric_label, published_range
from vrag_kit.papers.published import published
from vrag_kit.retrieval.hybrid import search_by_modality
from vrag_kit.types import MODALITIES, Benchmark, Context, DocId, Query, ordered

ZERO_SHOT = "zero_shot"
ABSTENTION = "abstention"
ARMS = {
    ZERO_SHOT: "no evidence",
    MODES[0]: "distractors only",
    MODES[1]: "gold and distractors",
    MODES[2]: "gold only",
}
"""Maps a setting to the evidence shown, from none to gold only."""
EFFECTS = (
    (MODES[2], ZERO_SHOT),
    (MODES[1], MODES[2]),
    (MODES[0], ZERO_SHOT),
)
"""Pairs (setting, baseline): the gain of gold evidence, the cost of distractors added to it, and
the effect of distractors alone.
"""
FEWEST = 5
"""Differences of fewer questions are not drawn."""
SAME_EVIDENCE = (
    f"Gold and distractors is drawn where at least {FEWEST} questions have a distractor: the gold"
    " documents of most questions of Visual-RAG fill the places for images."
)
_ARM = ["dataset", "metric", "model", "stratum", "setting"]
_MEANS = ["value", "ci_low", "ci_high", "n", "n_failed"]


def ask_suite(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    contexts: Mapping[str, Sequence[Context]],
    answers_dir: Path | str,
    *,
    prompt_sets: Mapping[str, PromptSet],
    **how: Any,  # decoding and hardware, as `ask_models` has them
) -> dict[str, pd.DataFrame]:
    """Runs `ask_models` on each data set with its contexts and prompts; raises as that does."""
    return {
        name: ask_models(
            models, each, contexts[name], answers_dir, prompts=prompt_sets[name], **how
        )
        for name, each in suite.items()
    }


def evaluate_suite(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    contexts_of: Callable[[Benchmark], Sequence[Context]],
    originals: Mapping[str, Benchmark],
    judges: Mapping[str, Judge],
    answers_dir: Path,
    **options: Any,
) -> dict[str, pd.DataFrame]:
    """Asks about the contexts of each data set (`ask_suite`, which takes `options`), and judges the
    answers by the data sets in `originals` (`judge_suite`), of which `suite` may be other versions.
    """
    contexts = {name: contexts_of(each) for name, each in suite.items()}
    answers = ask_suite(models, suite, contexts, answers_dir, **options)
    return judge_suite(originals, answers, judges)


def judge_suite(
    datasets: Mapping[str, Benchmark],
    answers: Mapping[str, pd.DataFrame],
    judges: Mapping[str, Judge],
) -> dict[str, pd.DataFrame]:
    """Maps each data set to its answers, judged by its judge, as to the questions of `datasets`,
    with the column metric: the data set's own (`dataset_metric`), or "score (…)" with the judge's
    name. Raises as `judge_answers` does.
    """
    judged = {}
    for name, table in answers.items():
        metric = dataset_metric(name, datasets[name]) or f"score ({judges[name].name})"
        judged[name] = judge_answers(judges[name], datasets[name], table).assign(metric=metric)
    return judged


def training_strata(
    judged: Mapping[str, pd.DataFrame], datasets: Mapping[str, Benchmark], models: Sequence[Entry]
) -> dict[str, pd.DataFrame]:
    """Adds the column stratum to the tables of `judge_suite`: in the model's training data or not
    (`memorised_in_suite`). All questions follow again, unless a data set has only one stratum. If
    the training data of some model are unknown, there is "all questions" only.
    """
    trained = memorised_in_suite(models, datasets)
    found = {}
    for name, table in judged.items():
        apart = expand_known_strata(table, trained)
        is_one = apart["stratum"].nunique() == 2  # it, and all questions
        found[name] = apart[apart["stratum"] != ALL] if is_one else apart
    return found


def expand_known_strata(
    table: pd.DataFrame, trained: Mapping[str, Collection[str]]
) -> pd.DataFrame:
    """Runs `expand_strata` if the training data of all models are known; else all rows are "all
    questions".
    """
    known = set(table["model"]) <= set(trained)
    return expand_strata(table, trained) if known else table.assign(stratum=ALL)


def memorised_in_suite(
    models: Sequence[Entry], datasets: Mapping[str, Benchmark]
) -> dict[str, frozenset[str]]:
    """Computes `trained_groups` on the questions of all data sets together. A data set whose
    species are all outside the training data is then recognised as such.
    """
    queries: dict[str, Query] = {}
    for name, benchmark in datasets.items():
        queries |= {f"{name} {query_id}": each for query_id, each in benchmark.queries.items()}
    every = replace(next(iter(datasets.values())), name="the suite", queries=queries)
    return trained_groups(models, every)


def mode_means(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Averages each data set's own metric, then the share of abstentions (metric "abstention"), of
    the tables of `training_strata`: dataset, metric, model, stratum, setting, value, ci_low,
    ci_high, n, n_failed (answers without a score, which are excluded).
    """
    tables = []
    for name, table in judged.items():
        means = mean_scores(
            table.assign(dataset=name), by=["dataset", "model", "stratum", "setting"]
        )
        own = table["metric"].iloc[0]
        tables.append(means.assign(metric=means["metric"].replace("accuracy", own)))
    return pd.concat(tables, ignore_index=True)[[*_ARM, *_MEANS]]


def mode_effects(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Computes `EFFECTS` on the same questions, of the tables of `training_strata`: dataset,
    metric, model, stratum, setting, baseline, value, ci_low, ci_high, n, n_failed, p, p_holm.

    A question is excluded from an effect whose two settings show it the same documents, as where
    gold evidence leaves no room for distractors. p_holm corrects each effect for all data sets and
    models, the strata in one family and the pooled rows in another. Data sets are not pooled, as
    their metrics differ.
    """
    tables = []
    for name, table in judged.items():
        for setting, baseline in EFFECTS:
            pair = table[table["setting"].isin([setting, baseline])].assign(dataset=name)
            values = per_query(drop_same_documents(pair, baseline), by=_ARM)
            if (values["setting"] == setting).any():
                effects = paired_differences(values, arm="setting", by=_ARM[:-1], baseline=baseline)
                tables.append(effects)
    table = pd.concat(tables, ignore_index=True)
    families = table.assign(is_pooled=table["stratum"] == ALL)
    table["p_holm"] = holm_by_family(families, ["setting", "baseline", "is_pooled"])
    return table[[*_ARM, "baseline", *_MEANS, "p", "p_holm"]]


def drop_same_documents(answers: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Drops the answers that were shown the same documents, in any order, as the answer to that
    question in the setting `baseline`: they tell nothing about a difference from it.
    """
    documents = answers["doc_ids"].map(frozenset)
    keys = pd.MultiIndex.from_frame(answers[["dataset", "model", "query_id"]])
    is_baseline = (answers["setting"] == baseline).to_numpy()
    first = dict(zip(keys[is_baseline], documents[is_baseline], strict=True))
    pairs = zip(keys, documents, strict=True)
    same = [bool(each) and each == first.get(key) for key, each in pairs]
    kept: pd.DataFrame = answers[is_baseline | ~np.array(same, bool)]
    return kept


def strata_or_pooled(table: pd.DataFrame) -> pd.DataFrame:
    """Drops the rows of all questions of data sets that have strata; `table` is one of means or
    effects.
    """
    is_part = table["stratum"] != ALL
    return table[is_part | ~table["dataset"].isin(table.loc[is_part, "dataset"])]


def without_same_evidence(means: pd.DataFrame, effects: pd.DataFrame) -> pd.DataFrame:
    """Drops the means of gold and distractors where fewer than `FEWEST` questions have a
    distractor, by the n of `effects` (`mode_effects`, or changes of claim metrics).
    """
    keys = ["dataset", "model", "stratum", "setting"]
    enough = pd.MultiIndex.from_frame(effects.loc[effects["n"] >= FEWEST, keys])
    is_known = pd.MultiIndex.from_frame(means[keys]).isin(enough)
    return means[is_known | (means["setting"] != MODES[1])]


def mode_names(table: pd.DataFrame) -> dict[str, str]:
    """Returns the names of settings (`ARMS`), and of each data set with its own metric, in figures
    of `table`, which is one of means or effects.
    """
    metrics = zip(table["dataset"], table["metric"].map(metric_label), strict=True)
    return {**ARMS, **{name: f"{name}, {metric}" for name, metric in metrics}}


def compare_modes_to_paper(means: pd.DataFrame) -> pd.DataFrame:
    """Compares our means with the range of the paper's models on its data (`published_range`): rows
    data sets, metrics, strata and evidence shown. Columns are our models' cells with n, EM/Accuracy
    of Table 5, and the F1 over claims of Tables 14 and 15, by modality if there are two. "–" where
    nothing is published.

    `means` are `to_percent(mode_means(…))`, of which the data sets' own metrics are shown.
    """
    own = means[means["metric"] != ABSTENTION]
    rows = ["dataset", "metric", "stratum", "setting"]
    table = report_table(own, rows=rows, columns=["model"])
    f1 = published("mrag_suite", [14, 15], metric="f1")
    papers = {
        "Table 5, EM/Accuracy": published("mrag_suite", 5),
        "Tables 14 and 15, F1, pictures": f1[f1["modality"] != "text"],
        "Tables 14 and 15, F1, texts": f1[f1["modality"] == "text"],
    }
    for title, paper in papers.items():
        spread = published_range(paper, ["dataset", "setting"])
        places = pd.MultiIndex.from_frame(table.index.to_frame()[["dataset", "setting"]])
        table[f"{title}: {spread.name}"] = spread.reindex(places).to_numpy()
    return table.rename(index=ARMS, level="setting").fillna(NOTHING)


_DEPTH = 20
"""Number of documents per modality that a search ranks, beyond gold ones where those are apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    cache_dir: Path | str = "runs/embeddings"
    device: str = "cpu"

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
        contexts = []
        for query_id in benchmark.queries:
            gold: dict[str, list[DocId]] = defaultdict(list)
            for doc_id in benchmark.relevant(query_id):
                gold[benchmark.corpus[doc_id].modality].append(doc_id)
            shown = list(chain.from_iterable(gold[each][: self.k[each]] for each in MODALITIES))
            if shown:
                k = sum(self.k.values())
                context = Context(query_id=query_id, setting=GT_ONLY, k=k, doc_ids=tuple(shown))
                contexts.append(context)
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
        runs = search_by_modality(
            benchmark, self.retrievers, k=depth, cache_dir=self.cache_dir, device=self.device
        )
        ranked = {modality: list(by_name.values())[-1] for modality, by_name in runs.items()}
        return ranked, {name: self.k[name] for name in ranked if self.k.get(name, 0) > 0}


def sample_per_dataset(
    suite: Mapping[str, Benchmark], questions: int | None, *, seed: int = 0
) -> dict[str, Benchmark]:
    """Samples at most `questions` questions of each data set, the first in an order by hash, so
    samples are nested; None: all.
    """
    if questions is None:
        return dict(suite)
    return {
        name: benchmark.subset(ordered(benchmark.queries, seed, "some of each")[:questions])
        for name, benchmark in suite.items()
    }
