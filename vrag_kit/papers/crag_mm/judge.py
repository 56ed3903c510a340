"""Loads the truthfulness judge named by a parameter; judges answers by each abstention rule."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from vrag_kit.analysis.estimates import estimate
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.generation.prompts import strip_thoughts
from vrag_kit.judging import Judge, TruthfulnessRuleJudge, is_abstention, load_judge
from vrag_kit.judging.rubric import Rubric, UnparsedError, Verdict, one_line
from vrag_kit.judging.scale import TRUTH
from vrag_kit.judging.truthfulness import Declines, precheck, truth_verdict
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import Workspace

_RESULT = re.compile(r"\bresult\b[\s*_\"'“”]*:(.*)", re.IGNORECASE)
_ROUND = " \t*_`\"'“”.!"
_CALLS = re.compile(r"\bprediction is (not )?(correct|incorrect|wrong)\b", re.IGNORECASE)


def read_result(raw: str) -> Verdict:
    """Parses a verdict that ends with "Result: CORRECT" or "Result: WRONG".

    Bold type, quotes, thoughts in <think> tags and other lines before it are ignored. Raises
    `UnparsedError` if the last line gives no result, or another than these two, such as "INCORRECT"
    or both; if another line gives another one; or if the explanation calls the prediction the
    opposite.
    """
    lines = [line for line in strip_thoughts(raw).splitlines() if line.strip(_ROUND)]
    results = [found[1].strip(_ROUND).upper() for line in lines if (found := _RESULT.search(line))]
    if not results or not _RESULT.search(lines[-1]):
        raise UnparsedError("the last line is not “Result: CORRECT” or “Result: WRONG”")
    if odd := [result for result in results if result not in ("CORRECT", "WRONG")]:
        raise UnparsedError(f"“{odd[0][:30]}” is neither CORRECT nor WRONG")
    if len(set(results)) > 1:
        raise UnparsedError("it says both CORRECT and WRONG")
    right = results[-1] == "CORRECT"
    for denied, called in _CALLS.findall("\n".join(lines)):
        called_right = (called.lower() == "correct") != bool(denied)
        if called_right != right:
            raise UnparsedError(f"the result is {results[-1]}, but the explanation says otherwise")
    return truth_verdict(right)


def is_abstention_code(answer: str) -> bool:
    """Abstention rule of the authors' code of 2026: "I don't know" or "I do not know", ignoring all
    but letters, digits and spaces. "Sorry, I can't tell" is an answer.
    """
    words = re.sub("[^a-z0-9 ]", "", answer.lower())
    return "i dont know" in words or "i do not know" in words


def is_abstention_challenge(answer: str) -> bool:
    """Abstention rule of the challenge's evaluator of 2025: "I don't know" with a straight
    apostrophe.
    """
    return "i don't know" in answer.lower()


READINGS: Mapping[str, Declines] = {
    "code": is_abstention_code,
    "challenge": is_abstention_challenge,
    "vrag_kit": is_abstention,
}
"""Maps a rule's name to its function; vrag_kit's also covers "I cannot tell" and the like."""


_TEXTS = yaml.safe_load(Path(__file__).with_name("rubric.yaml").read_text(encoding="utf-8"))


def truthfulness_rubric(*, abstention: str = "code") -> Rubric:
    """Returns the rubric of the truthfulness judge, on a scale from −1 to 1.

    An answer that abstains by the rule `abstention` (one of `READINGS`) is missing and not sent to
    the judge, nor is one that equals the accepted answer. Raises `VragError` for an unknown rule.
    """
    if abstention not in READINGS:
        raise VragError(f"abstention is {abstention!r}; expected one of {', '.join(READINGS)}.")
    return Rubric(
        scale=TRUTH,
        template=(("system", _TEXTS["system"]), ("user", _TEXTS["user"])),
        fields=_fields,
        read=read_result,
        repair=_TEXTS["repair"],
        precheck=partial(precheck, declines=READINGS[abstention]),
        variant=abstention,
    )


def _fields(query: Query, answer: str) -> dict[str, str]:
    """Question, ground truth and prediction, each on one line."""
    fields = {"references": " / ".join(query.answers), "question": query.text, "answer": answer}
    return {name: one_line(text) for name, text in fields.items()}


def load_truthfulness_judge(
    entry: Entry, at: Workspace | None = None, *, abstention: str = "code"
) -> Judge:
    """Loads the judge that a parameter names: "truth_rule", any model that `load_generator` takes,
    with the paper's prompt and 1,024 tokens (A.5.2), or a custom class with scale (-1, 1).

    `abstention` names the rule, one of `READINGS`, by which an answer is missing. Raises as
    `load_judge` does, and `VragError` for an unknown rule.
    """
    rubric = truthfulness_rubric(abstention=abstention)
    judge = load_judge(entry, at, rubric=rubric, max_new_tokens=1024)
    if isinstance(judge, TruthfulnessRuleJudge):
        return TruthfulnessRuleJudge(READINGS[abstention])
    return judge


_CLASSES = {"correct": "accurate", "incorrect": "hallucinated", "missing": "missing"}


def judge_validation(labelled: pd.DataFrame) -> pd.DataFrame:
    """Computes Table 7 for any judge, from the rows of `evaluate_judge`: label ("accurate",
    "hallucinated", "missing", "average"), metric, value, ci_low, ci_high, n, as shares.

    For each class against the other two: accuracy over all answers, precision over those that the
    judge assigns to it, recall over those labelled so, f1 over both. Intervals are over questions,
    each of which has several answers; the average of the three classes has none. A class that never
    occurs has no value (NaN). An answer without a verdict is not assigned to any class.
    """
    rows = []
    for label, name in _CLASSES.items():
        of_it, said = labelled["label"] == label, labelled["judged"] == label
        both = of_it & said
        parts = {"accuracy": (of_it == said, of_it | True), "precision": (both, said)}
        parts |= {"recall": (both, of_it), "f1": (both, of_it | said)}
        for metric, (hit, among) in parts.items():
            # hits that count double make a share of hits F1
            weights = np.where(hit[among], 2.0, 1.0) if metric == "f1" else None
            found = estimate(hit[among], labelled["query_id"][among], weights=weights)
            rows.append({"label": name, "metric": metric, **found._asdict()})
    table = pd.DataFrame(rows).drop(columns="n_failed")
    means = table.groupby("metric", sort=False)["value"].mean()  # of the classes that occur
    average = means.reset_index().assign(label="average", n=len(labelled))
    return pd.concat([table, average], ignore_index=True)


_FILES = {"development": "answers_labelled.json", "held_out": "answers_labelled_later.json"}
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
    table, queries = judge_test_set(), {}
    for row in table.drop_duplicates("query_id").to_dict("records"):
        name, answers = row["query_id"], (row["reference"],)
        queries[name] = Query(query_id=name, text=row["question"], answers=answers, group=name)
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
