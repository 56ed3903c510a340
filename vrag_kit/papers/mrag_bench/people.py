"""Human answers (Figures 6 and 7 and Table 3): their table, and inter-rater agreement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from itertools import combinations
from pathlib import Path

import pandas as pd

from vrag_kit.analysis import to_percent
from vrag_kit.analysis.estimates import estimate
from vrag_kit.errors import VragError
from vrag_kit.generation.conversation import ANSWER_COLUMNS
from vrag_kit.log import logger
from vrag_kit.papers.mrag_bench.results import NO_LETTER, with_options
from vrag_kit.types import Benchmark, Context, Status
from vrag_kit.widgets.multiple_choice import CHOICE_COLUMNS, option_text, read_choices


def load_human_answers(
    benchmark: Benchmark, contexts: Sequence[Context], files: Iterable[Path | str]
) -> pd.DataFrame:
    """Load participants' choices as a table of answers like that of `ask_models`.

    The column model holds the participant, and seconds is added. There is one row for each of
    `contexts` that a participant answered. A choice whose option has another position in the
    benchmark's question, or that is of no context, is left out; how many are is printed. Raises
    `VragError` as `read_choices`, and when two files hold choices of one participant.
    """
    chosen = pd.concat([pd.DataFrame(columns=CHOICE_COLUMNS), *map(read_choices, files)])
    twice = chosen.loc[chosen.duplicated(["query_id", "setting", "participant"]), "participant"]
    if not twice.empty:
        raise VragError(f"two files hold choices of {twice.iloc[0]!r}; keep one for each person.")
    names = [field.name for field in fields(Context)]
    asked = pd.DataFrame(list(map(asdict, contexts)), columns=names)
    table = chosen.merge(asked, on=["query_id", "setting"])
    queries = [benchmark.queries[query_id] for query_id in table["query_id"]]
    texts = list(map(option_text, queries, table["option"]))
    table = table[table["option_text"] == texts]
    logger.info(
        f"people: {chosen['participant'].nunique()} chose {len(chosen):,} options;"
        f" {len(table):,} of them are to be compared, {len(chosen) - len(table):,} belong to other"
        " questions"
    )
    table = table.rename(columns={"participant": "model", "option": "answer"})
    table["group"] = table["query_id"].map(benchmark.groups)
    table = table.assign(benchmark=benchmark.name, sample=0, status=Status.OK.value)
    table = table.assign(template="", detail="", answer_id="")
    table = table.infer_objects().astype({"m": "Int64", "seconds": float})
    return table[[*ANSWER_COLUMNS, "seconds"]].reset_index(drop=True)


def inter_rater_agreement(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Computes how often two answerers choose the same option, correct or incorrect. Columns:
    setting, first, second, value, ci_low, ci_high, n, n_failed, kappa; in percent of the questions
    that both answered in a setting, with intervals over groups.

    n_failed counts questions where one answer names no option, or several. kappa is Cohen's:
    agreement beyond chance, given how often each chooses each letter; NaN if chance agreement is 1.
    Raises as `read_choice`.
    """
    from sklearn.metrics import cohen_kappa_score  # slow to import

    chosen = judged.drop_duplicates(["model", "setting", "query_id"])
    chosen = with_options(chosen, benchmark).fillna({"option": NO_LETTER})
    rows = []
    for setting, part in chosen.groupby("setting", sort=False):
        wide = part.pivot(index="query_id", columns="model", values="option")
        for first, second in combinations(dict.fromkeys(part["model"]), 2):
            both = wide[[first, second]].dropna()
            if both.empty:
                continue
            letters = both[(both != NO_LETTER).all(axis=1)]
            same = letters[first].eq(letters[second]).astype(float).reindex(both.index)
            found = estimate(same.to_numpy(), both.index.map(benchmark.groups).to_numpy())
            several = letters.stack().nunique() > 1
            kappa = cohen_kappa_score(letters[first], letters[second]) if several else math.nan
            rows.append((setting, first, second, *found, kappa))
    numbers = ["value", "ci_low", "ci_high", "n", "n_failed", "kappa"]
    table = pd.DataFrame(rows, columns=["setting", "first", "second", *numbers])
    return to_percent(table.assign(metric="agreement"))
