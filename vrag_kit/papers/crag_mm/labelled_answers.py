"""Answers that were labelled before there was a rule judge, by the kit's makers, and what
a judge makes of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.cells import NOTHING
from vrag_kit.judging import Judge
from vrag_kit.judging.truth_rules import RULES
from vrag_kit.types import Benchmark, Query

_FILES = {
    "before the judge": "answers_labelled.json",
    "after": "answers_labelled_later.json",
}
OUTCOMES = {1.0: "right", 0.0: "missing", -1.0: "wrong"}
"""What a score says."""


def labelled_answers() -> pd.DataFrame:
    """One row an answer: query_id, written ("before the judge", or "after", and not used
    to mend it), kind ("name", "number", "yes or no", "list", "prose", "abstention"),
    question, reference, answer, label ("right", "missing" or "wrong").
    """
    rows = []
    for written, name in _FILES.items():
        data = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
        for number, row in enumerate(data["rows"]):
            told = {"query_id": f"{name}-{number}", "written": written}
            told |= {column: row[column] for column in ("kind", "question", "reference")}
            rows += [{**told, "answer": answer, "label": label} for answer, label in row["answers"]]
    return pd.DataFrame(rows)


def judge_on_labelled(judge: Judge) -> pd.DataFrame:
    """`labelled_answers` with what a judge makes of each: judged ("right", "missing",
    "wrong", or "" without a verdict), agrees, rule (its marks) and verdict (its words).
    """
    table = labelled_answers()
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


def rules_on_labelled(judged: pd.DataFrame) -> pd.DataFrame:
    """What `RULES` say, from the rows of `judge_on_labelled`: rule, says, and for each of
    when answers were written "as labelled, of decided"; "–" where a rule decided none,
    as of another judge than the rule judge.
    """
    rows = []
    for rule, says in RULES.items():
        row = {"rule": rule, "says": says}
        for written in _FILES:
            mine = judged[(judged["written"] == written) & judged["rule"].eq(rule)]
            row[written] = f"{mine['agrees'].sum()} of {len(mine)}" if len(mine) else NOTHING
        rows.append(row)
    return pd.DataFrame(rows)
