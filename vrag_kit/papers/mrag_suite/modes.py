"""Short answers in the modes of evidence, each data set by its own metric (Table 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.means import column_means, per_query
from vrag_kit.analysis.report_tables import NOTHING, ci_cells, differences_table
from vrag_kit.analysis.strata import ALL, expand_strata, trained_groups
from vrag_kit.config import Entry
from vrag_kit.generation import evidence_modes
from vrag_kit.generation.evidence_modes import GT_ONLY, top_k_per_modality
from vrag_kit.generation.experiment import ask_models
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.judging import SHARES, Judge, judge_answers, load_judge, scale_of
from vrag_kit.papers.mrag_suite.datasets import MODES, dataset_metric, metric_label, published_range
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
_ARM = ["dataset", "metric", "model", "stratum", "setting"]


def judge_suite(
    datasets: Mapping[str, Benchmark],
    answers: Mapping[str, pd.DataFrame],
    judge: Judge | Mapping[str, Judge],
) -> dict[str, pd.DataFrame]:
    """Maps each data set to its judged answers (`judge_answers`) with the column metric. The metric
    is the data set's own (`dataset_metric`), or else the score of its `judge`, under that name.
    """
    judged = {}
    for name, table in answers.items():
        whose = judge[name] if isinstance(judge, Mapping) else judge
        metric = dataset_metric(name, datasets[name])
        own = load_judge(metric) if metric else whose
        metric = metric or f"score ({own.name})"
        judged[name] = judge_answers(own, datasets[name], table).assign(metric=metric)
    return judged


def training_strata(
    judged: Mapping[str, pd.DataFrame], datasets: Mapping[str, Benchmark], models: Sequence[Entry]
) -> dict[str, pd.DataFrame]:
    """Adds the column stratum to the tables of `judge_suite`: in the model's training data or not
    (`trained_groups`, of the questions of all data sets together). All questions follow again,
    unless a data set has only one stratum. If the training data of some model are unknown, there is
    "all questions" only.
    """
    told = memorised_in_suite(models, datasets)
    found = {}
    for name, table in judged.items():
        if not set(table["model"]) <= set(told):
            found[name] = table.assign(stratum=ALL)
            continue
        apart = expand_strata(table, told)
        is_one = apart["stratum"].nunique() == 2  # it, and all questions
        found[name] = apart[apart["stratum"] != ALL] if is_one else apart
    return found


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
    """Averages each data set's own metric, then the share of abstentions (metric "abstention"):
    dataset, metric, model, stratum (if the tables have one), setting, value, ci_low, ci_high, n,
    n_failed (answers without a score, which are excluded).
    """
    tables, by = [], _by(judged)
    for name, table in judged.items():
        own = table["metric"].iloc[0]
        told = table.assign(dataset=name)
        for column, metric in (("score", own), ("abstained", ABSTENTION)):
            scale = scale_of(table) if column == "score" else SHARES
            means = column_means(told, [column], by=[b for b in by if b != "metric"], scale=scale)
            tables.append(means.assign(metric=metric))
    means = pd.concat(tables, ignore_index=True)
    return means[[*by, *(name for name in means if name not in by)]]


def _by(judged: Mapping[str, pd.DataFrame]) -> list[str]:
    """What tells rows apart."""
    has_strata = any("stratum" in table for table in judged.values())
    return [name for name in _ARM if has_strata or name != "stratum"]


def mode_effects(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Computes `EFFECTS` on the same questions: dataset, metric, model, stratum (if the tables have
    one), setting, baseline, value, ci_low, ci_high, n, n_failed, p, p_holm.

    A question is excluded from an effect whose two settings show it the same documents, as where
    gold evidence leaves no room for distractors. p_holm corrects each effect for all data sets and
    models, the strata in one family and the pooled rows in another. Data sets are not pooled, as
    their metrics differ.
    """
    tables, by = [], _by(judged)
    for name, table in judged.items():
        values = per_query(table.assign(dataset=name), by=by)
        for setting, baseline in EFFECTS:
            same = _same_documents(table, setting, baseline)
            keys = pd.MultiIndex.from_frame(values[["model", "query_id"]])
            pair = values[values["setting"].isin([setting, baseline]) & ~keys.isin(same)]
            if len(pair):
                found = paired_differences(pair, arm="setting", by=by[:-1], baseline=baseline)
                tables.append(found)
    table = pd.concat(tables, ignore_index=True)
    pools = table.assign(pools=table["stratum"].eq(ALL) if "stratum" in table else False)
    table["p_holm"] = holm_by_family(pools, ["setting", "baseline", "pools"])
    first = [*by, "baseline"]
    return table[[*first, *(name for name in table if name not in first)]]


def _same_documents(judged: pd.DataFrame, setting: str, baseline: str) -> list[tuple[str, str]]:
    """(model, query_id) of the questions that both settings show the same documents."""
    some = judged[judged["setting"].isin([setting, baseline]) & (judged["doc_ids"].str.len() > 0)]
    sets = some.assign(shown=some["doc_ids"].map(frozenset))
    counts = sets.groupby(["model", "query_id"]).agg({"setting": "nunique", "shown": "nunique"})
    return list(counts.index[(counts["setting"] == 2) & (counts["shown"] == 1)])


def strata_or_pooled(table: pd.DataFrame) -> pd.DataFrame:
    """Drops the rows of all questions of data sets that have strata; `table` is one of means or
    effects.
    """
    is_part = table["stratum"] != ALL
    return table[is_part | ~table["dataset"].isin(table.loc[is_part, "dataset"])]


def mode_names(table: pd.DataFrame) -> dict[str, str]:
    """Returns the names of settings (`ARMS`), and of each data set with its own metric, in figures
    of `table`, which is one of means or effects.
    """
    metrics = zip(table["dataset"], table["metric"].map(metric_label), strict=True)
    return {**ARMS, **{name: f"{name}, {metric}" for name, metric in metrics}}


def effects_table(effects: pd.DataFrame) -> pd.DataFrame:
    """Formats `to_percent(mode_effects(…))` by `differences_table`, with settings as text."""
    shown = effects["setting"].map(ARMS)
    return differences_table(effects.assign(setting=shown, baseline=effects["baseline"].map(ARMS)))


def compare_modes_to_paper(means: pd.DataFrame) -> pd.DataFrame:
    """Compares our means with the range of the paper's models on its data (`published_range`): rows
    data sets, metrics and evidence shown. Columns are our models' cells with n, EM/Accuracy of
    Table 5, and the F1 over claims of Tables 14 and 15, by modality if there are two. "–" where
    nothing is published.

    `means` are `to_percent(mode_means(…))`, of which the data sets' own metrics are shown.
    """
    keys = [name for name in _ARM if name in means and name != "model"]
    own = means[means["metric"] != ABSTENTION]
    cells = own.assign(cell=ci_cells(own, n=True))
    wide = cells.pivot_table(index=keys, columns="model", values="cell", aggfunc="first")
    known = cells[keys].drop_duplicates()
    table = wide.reindex(pd.MultiIndex.from_frame(known))[list(cells["model"].unique())]
    places = pd.MultiIndex.from_frame(known[["dataset", "setting"]])
    for title, paper in _printed().items():
        spread = published_range(paper, ["dataset", "setting"])
        table[f"{title}: {spread.name}"] = spread.reindex(places).to_numpy()
    return table.rename(index=ARMS, level="setting").fillna(NOTHING)


def _printed() -> dict[str, pd.DataFrame]:
    """What the paper prints by mode, by title."""
    f1 = published("mrag_suite", [14, 15], metric="f1")
    texts = f1["modality"] == "text"
    return {
        "Table 5, EM/Accuracy": published("mrag_suite", 5),
        "Tables 14 and 15, F1, pictures": f1[~texts],
        "Tables 14 and 15, F1, texts": f1[texts],
    }


DEPTH = 20
"""Number of documents per modality that a search ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridContexts:
    """Searches for evidence by modality, and builds contexts of the first k."""

    retrievers: Mapping[str, Sequence[Entry]]
    """Retrievers of each modality, as in `search_by_modality`; several are fused."""
    k: Mapping[str, int]
    """Number of documents of each modality in a context."""
    cache_dir: Path | str = "runs/embeddings"
    device: str = "cpu"

    def contexts(self, benchmark: Benchmark) -> list[Context]:
        """Returns one context per query with the first documents of each modality that the
        benchmark has (`top_k_per_modality`). Raises as `search_by_modality` does.
        """
        runs = search_by_modality(
            benchmark, self.retrievers, k=DEPTH, cache_dir=self.cache_dir, device=self.device
        )
        last = {modality: list(by_name.values())[-1] for modality, by_name in runs.items()}
        there = {modality: k for modality, k in self.k.items() if modality in last}
        return top_k_per_modality(benchmark, last, ks=there)

    def gold(self, benchmark: Benchmark) -> list[Context]:
        """Returns contexts with gold documents only, in the order of the labels, at most k of each
        modality: one per query that has any, in the setting "gt_only".
        """
        contexts = []
        for query_id in benchmark.queries:
            shown: tuple[DocId, ...] = ()
            for modality in MODALITIES:
                gold = [
                    name
                    for name in benchmark.relevant(query_id)
                    if benchmark.corpus[name].modality == modality
                ]
                shown += tuple(gold[: self.k[modality]])
            if shown:
                k = sum(self.k.values())
                contexts.append(Context(query_id=query_id, setting=GT_ONLY, k=k, doc_ids=shown))
        return contexts


def ask_suite(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    contexts: Mapping[str, Sequence[Context]],
    answers_dir: Path | str,
    *,
    prompt_sets: Mapping[str, PromptSet],
    decoding: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
    hardware: Mapping[str, Any] | None = None,
) -> dict[str, pd.DataFrame]:
    """Runs `ask_models` on each data set, with its contexts and its prompts; raises as
    that does.
    """
    found = {}
    for name, benchmark in suite.items():
        what = (models, benchmark, contexts[name], answers_dir)
        found[name] = ask_models(
            *what, prompts=prompt_sets[name], decoding=decoding, hardware=hardware
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEvaluation:
    """Models, prompts and judges of an evaluation of the suite."""

    models: Sequence[Entry]
    prompt_sets: Mapping[str, PromptSet]
    """Prompts by data set."""
    judges: Mapping[str, Judge]
    """Judges by data set; a data set with its own metric is scored by that."""
    scored_as: Mapping[str, Benchmark]
    """Original questions by data set: answers to any version are scored against them."""
    answers_dir: Path | str
    decoding: Mapping[str, Any] | None = None  # a notebook's parameter: values of any type
    hardware: Mapping[str, Any] | None = None

    def evaluate(
        self, suite: Mapping[str, Benchmark], contexts_of: Callable[[Benchmark], list[Context]]
    ) -> dict[str, pd.DataFrame]:
        """Maps each data set to judged answers (`judge_suite`) over the contexts of `contexts_of`,
        such as `HybridContexts`. Answers are judged as answers to `scored_as`; raises as
        `ask_suite` and `judge_answers` do.
        """
        contexts = {name: contexts_of(benchmark) for name, benchmark in suite.items()}
        what = (self.models, suite, contexts, self.answers_dir)
        answers = ask_suite(
            *what,
            prompt_sets=self.prompt_sets,
            decoding=self.decoding,
            hardware=self.hardware,
        )
        return judge_suite(self.scored_as, answers, self.judges)


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


_BEYOND = 20
"""Number of documents ranked beyond the gold ones, for enough distractors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceModes:
    """Samples questions and builds their contexts in the modes of evidence."""

    retrievers: Mapping[str, Sequence[Entry]]
    """Retrievers of each modality, as in `search_by_modality`; distractors are the best ranked,
    after fusion if there are several.
    """
    k: Mapping[str, int]
    """Number of documents of a modality in a context, where a data set has it."""
    questions: int | None = None
    """Maximum number of questions per data set; None: all that have gold evidence."""
    seed: int = 0
    """Seed of the sample of questions, and of the order of documents."""
    cache_dir: Path | str
    device: str = "cpu"

    def sample(self, benchmark: Benchmark) -> Benchmark:
        """Samples the questions; a larger sample contains a smaller one."""
        there = [each for each in benchmark.queries if benchmark.relevant(each)]
        return benchmark.subset(ordered(there, self.seed, "in modes")[: self.questions])

    def contexts(self, benchmark: Benchmark) -> list[Context]:
        """Returns each sampled question's contexts in the modes of `evidence_modes`, over the data
        set's modalities. Raises `VragError` as that and `search_by_modality` do.
        """
        few = self.sample(benchmark)
        most = max((len(few.relevant(each)) for each in few.queries), default=0)
        k = most + max(_BEYOND, *self.k.values())
        runs = search_by_modality(
            benchmark, self.retrievers, k=k, cache_dir=self.cache_dir, device=self.device
        )
        ranked = {modality: list(by_name.values())[-1] for modality, by_name in runs.items()}
        ks = {modality: self.k[modality] for modality in ranked if self.k[modality] > 0}
        return evidence_modes(few, ranked, ks=ks, seed=self.seed)
