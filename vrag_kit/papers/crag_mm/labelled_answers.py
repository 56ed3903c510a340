"""Test set of answers that the kit's authors labelled before the rule judge existed, and the
evaluation of a judge on it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.report_tables import NOTHING
from vrag_kit.judging import Judge
from vrag_kit.judging.truthfulness import RULES
from vrag_kit.types import Benchmark, Query

_FILES = {
    "development": "answers_labelled.json",
    "held_out": "answers_labelled_later.json",
}
OUTCOMES = {1.0: "correct", 0.0: "missing", -1.0: "incorrect"}
"""Maps a score to its label."""


def judge_test_set() -> pd.DataFrame:
    """Returns the labelled answers, one per row: query_id, split ("development", or "held_out":
    labelled after the rule judge was written, and not used to improve it), kind ("name", "number",
    "yes or no", "list", "prose", "abstention"), question, reference, answer, label ("correct",
    "missing" or "incorrect").
    """
    rows = []
    for split, name in _FILES.items():
        data = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
        for number, row in enumerate(data["rows"]):
            told = {"query_id": f"{name}-{number}", "split": split}
            told |= {column: row[column] for column in ("kind", "question", "reference")}
            rows += [{**told, "answer": answer, "label": label} for answer, label in row["answers"]]
    return pd.DataFrame(rows)


def evaluate_judge(judge: Judge) -> pd.DataFrame:
    """Judges `judge_test_set` and adds the columns judged ("correct", "missing", "incorrect", or ""
    without a verdict), agrees, rule (its marks) and verdict (its text).
    """
    table = judge_test_set()
    queries: dict[str, Query] = {}
    for row in table.to_dict("records"):
        name, reference = row["query_id"], row["reference"]
        queries[name] = Query(query_id=name, text=row["question"], answers=(reference,), group=name)
    benchmark = Benchmark(
        name="labelled answers", fingerprint="", queries=queries, corpus={}, qrels={}
    )
    verdicts = [first for first, *_ in judge.judge(benchmark, table)]
    judged = ["" if each.score is None else OUTCOMES[each.score] for each in verdicts]
    return table.assign(
        judged=judged,
        agrees=table["label"] == np.array(judged),
        rule=[", ".join(sorted(each.marks)) for each in verdicts],
        verdict=[each.raw or "" for each in verdicts],
    )


def rule_accuracy(judged: pd.DataFrame) -> pd.DataFrame:
    """Computes the accuracy of each rule of `RULES` from the rows of `evaluate_judge`. Columns:
    rule, says, and for each split "agreeing of decided"; "–" where a rule decided none, as for a
    judge other than the rule judge.
    """
    rows = []
    for rule, says in RULES.items():
        row = {"rule": rule, "says": says}
        for split in _FILES:
            mine = judged[(judged["split"] == split) & judged["rule"].eq(rule)]
            row[split] = f"{mine['agrees'].sum()} of {len(mine)}" if len(mine) else NOTHING
        rows.append(row)
    return pd.DataFrame(rows)
