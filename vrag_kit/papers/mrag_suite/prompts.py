"""Parts of the paper's prompts (Tables 10 to 12), the twelve prompts of its sweep, and their
templates: images and passages, then the question; the layout is ours.

In the sweep (Table 6) the best prompt is selected on one half of the groups and reported on the
other, as the best of twelve is biased where it was selected. Each prompt is also tested against the
mean of all, on all questions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.comparisons import paired_differences
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.errors import VragError
from vrag_kit.generation.evidence_modes import MODES
from vrag_kit.generation.prompts import PARSERS, PromptSet, read_prompts, strip_thoughts
from vrag_kit.judging import SHARES, Rubric, UnparsedError, Verdict
from vrag_kit.judging.rubric import one_line
from vrag_kit.papers.published import published
from vrag_kit.types import Query, ordered

_DATA = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
INIT: dict[str, str] = _DATA["init"]
"""Table 10: initialisation style → its text; <DOMAIN> is replaced by Table 1's domain."""
EXAMPLES: dict[str, str] = _DATA["examples"]
"""Table 11: exemplar style → its template, a hint at the form of an answer."""
REASONING: dict[str, str] = _DATA["reasoning"]
"""Table 12: reasoning pattern → its block; the sweep uses two of the six."""
SWEPT = ("direct", "retrieve_then_reason")
_LAYOUT = read_prompts(Path(__file__).with_name("layout.yaml"))
SETTINGS = ("zero_shot", "image", "text", "both", "top_k", *MODES)
"""Settings, all with the same template; evidence that is not shown is not announced."""
LAYOUT = "paper"
"""Name of the layout of `suite_prompts` in a sweep, as opposed to a model's training prompt."""


PROMPTS = tuple("-".join(parts) for parts in product(INIT, EXAMPLES, SWEPT))
"""Names of the sweep's twelve prompts, "expert-ex3-direct"; the paper's nicknames clash (Table 6
has some that Table 11 does not, and Table 11 maps expert3 to ex6).
"""


def prompt_parts(prompt: str, domain: str) -> dict[str, str]:
    """Returns the opening, for an expert in `domain`, the example and the reasoning of a prompt,
    also of the four reasoning patterns outside of the sweep ("plain-ex1-verify"). Raises
    `VragError` for an unknown name.
    """
    every = {"-".join(parts): parts for parts in product(INIT, EXAMPLES, REASONING)}
    if prompt not in every:
        raise VragError(f"prompt is {prompt!r}; expected one of {', '.join(every)}.")
    names = every[prompt]
    return {
        "opening": INIT[names[0]].replace("<DOMAIN>", domain),
        "example": EXAMPLES[names[1]],
        "reasoning": REASONING[names[2]],
    }


def domain_of(dataset: str) -> str:
    """Returns Table 1's domain of a data set, by its name in `DATASETS`; raises `KeyError` for
    another.
    """
    rows = published("mrag_suite", 1, metric="n_full").set_index("dataset")
    return str(rows["domain"][dataset])


def suite_prompts(
    prompt: str = "expert-ex3-direct",
    *,
    domain: str,
    answer: str = "short",
    captions: bool = False,
    options: bool = False,
) -> PromptSet:
    """Returns one of `PROMPTS`, for an expert in `domain` (`domain_of`), that requests a short and
    a long answer on two labelled lines; `answer` ("short", "long") selects the one to parse.

    Images come before texts (Table 10), the question's own first. With `captions` each image's
    text, such as a caption or a page's content, is shown below it, and every image needs one; with
    `options` a question's options. Raises `VragError` for an unknown prompt, `KeyError` for an
    unknown answer.
    """
    values: dict[str, str | bool] = {"captions": captions, "options": options}
    values |= prompt_parts(prompt, domain)
    template = _LAYOUT.with_values(values).template("layout")
    return PromptSet(
        templates={prompt: replace(template, name=prompt)},
        settings={setting: {None: prompt} for setting in SETTINGS},
        read=PARSERS[answer],
    )


_WORDS = json.loads((Path(__file__).parent / "short_answers.json").read_text(encoding="utf-8"))
_GRADES = {"CORRECT": 1.0, "PARTIAL": 0.5, "INCORRECT": 0.0, "NO ANSWER": 0.0}
"""Grade → score."""
_GRADE = re.compile(r"grade[\s*_\"'“”]*:(.*)", re.IGNORECASE)
_ROUND = " \t*_`\"'“”.!"


def _fields(query: Query, answer: str) -> dict[str, str]:
    """Each on one line; the accepted answers are a JSON list."""
    references = json.dumps(list(query.answers), ensure_ascii=False)
    fields = {"question": query.text, "references": references, "answer": answer}
    return {name: one_line(text) for name, text in fields.items()}


def read_grade(raw: str) -> Verdict:
    """Parses a verdict whose last line is "Grade: CORRECT", PARTIAL, INCORRECT or NO ANSWER (mark
    "abstention").

    Bold type, quotes, and thoughts in <think> tags are ignored. Raises `UnparsedError` if the last
    line gives no grade or an unknown one, and if two lines differ.
    """
    lines = [line.strip(_ROUND) for line in strip_thoughts(raw).splitlines()]
    found = [_GRADE.match(line) for line in lines if line]
    if not found or not found[-1]:
        raise UnparsedError("the last line is no grade")
    grades = list(dict.fromkeys(each[1].strip(_ROUND).upper() for each in found if each))
    if odd := [grade for grade in grades if grade not in _GRADES]:
        raise UnparsedError(f"“{odd[0][:30]}” is none of {', '.join(_GRADES)}")
    if len(grades) > 1:
        raise UnparsedError(f"it gives the grades {' and '.join(grades)}")
    marks = {"abstention"} if grades == ["NO ANSWER"] else set()
    return Verdict(_GRADES[grades[0]], frozenset(marks))


SHORT_ANSWERS = Rubric(
    scale=SHARES,
    template="\n".join([*_WORDS["task"], "", _WORDS["case"]]),
    fields=_fields,
    read=read_grade,
    repair=_WORDS["repair"],
)
"""The rubric: scores 1, 0.5 and 0, with the mark "abstention"."""


CLOSED_BOOK = read_prompts(Path(__file__).with_name("closed_book.yaml"))
"""Prompts without evidence that ask for an answer and a confidence: a line "Answer: …" and a line
"Confidence: …", from 0 to 1; ours, as the paper has none. `with_confidence` splits the answers.
"""
_FORM = re.compile(
    r"^\s*Answer:(?P<answer>.*)\n\s*Confidence:\s*(?P<confidence>0?\.\d+|0\.?|1(?:\.0*)?)\s*$",
    re.DOTALL,
)


def with_confidence(answers: pd.DataFrame) -> pd.DataFrame:
    """Splits the answers to `CLOSED_BOOK` into the answer and the column confidence, in [0, 1].

    It is NaN if none is stated in the requested format; the whole reply is then the answer.
    """
    parts = answers["answer"].astype(object).str.extract(_FORM)
    words = parts["answer"].str.strip().astype(object).fillna(answers["answer"])
    return answers.assign(answer=words, confidence=parts["confidence"].astype(float))


TRAINED = "training prompt (control)"
NO_EVIDENCE = "no evidence (control)"
CONTROLS = (TRAINED, NO_EVIDENCE)
"""Control arms with an effect that a test should find: the prompt that an answerer was trained
with, alone, over the same evidence; and the same without any evidence. Neither is ever selected,
nor in the mean of the prompts.
"""
MEAN = "mean of the prompts"
"""Baseline of each prompt's test."""


def split_groups(groups: Sequence[str] | pd.Series) -> dict[str, str]:
    """Maps each group to "selection" or "held_out": the first half of the groups in an order by
    hash, and the rest, which may be one more. Raises `VragError` for fewer than two.
    """
    names = ordered(dict.fromkeys(map(str, groups)), 0, "halves of the sweep")
    if len(names) < 2:
        raise VragError(
            f"split_groups: found {len(names)} group; expected several, as prompts are selected on"
            " one half of the groups and reported on the other."
        )
    selection = names[: len(names) // 2]
    return {name: "selection" if name in selection else "held_out" for name in names}


def prompt_sweep(judged: pd.DataFrame) -> pd.DataFrame:
    """Computes each prompt's mean on both halves of a data set's groups, in percent: dataset,
    metric, prompt, half, value, ci_low, ci_high, n, n_failed, unit, selected.

    `judged` comes from `judge_suite`, with the column prompt. Values are means over models, as
    in Table 6, only for questions with a value for each prompt; n_failed counts the others of both
    halves. The selected prompt of a data set has the highest mean on the selection half, the first
    in case of ties, and is none of `CONTROLS`. Raises `VragError` as `split_groups` does.
    """
    tables = []
    for _, of_dataset in judged.groupby("dataset", sort=False):
        values, failed = _complete(per_query(of_dataset, by=["dataset", "metric", "prompt"]))
        halves = values["group"].astype(str).map(split_groups(of_dataset["group"]))
        by = ["dataset", "metric", "prompt", "half"]
        means = cluster_means(values.assign(half=halves), by).assign(n_failed=failed)
        candidates = means[(means["half"] == "selection") & ~means["prompt"].isin(CONTROLS)]
        best = candidates["prompt"].iloc[candidates["value"].to_numpy().argmax()]
        tables.append(means.assign(selected=means["prompt"] == best))
    return to_percent(pd.concat(tables, ignore_index=True))


def prompt_gains(judged: pd.DataFrame) -> pd.DataFrame:
    """Computes the gain of each prompt over the mean of all but `CONTROLS` on the same questions of
    each data set, in points: prompt, dataset, metric, stratum, value, ci_low, ci_high, n, n_failed,
    p, baseline, p_holm, unit, model (all names if there are several, as values are means over
    them).

    `judged` is as in `prompt_sweep`, with the column stratum (`training_strata`). All questions
    with a value for each prompt count, as nothing is selected; p_holm corrects for all prompts of a
    data set and stratum.
    """
    by = ["dataset", "metric", "stratum"]
    values, _ = _complete(per_query(judged, by=["prompt", *by]))
    same = [*by, "query_id", "group", "score_min", "score_max"]
    candidates = values[~values["prompt"].isin(CONTROLS)]
    mean = candidates.groupby(same, sort=False)["value"].mean().reset_index()
    both = pd.concat([values, mean.assign(prompt=MEAN)], ignore_index=True)
    gains = paired_differences(both, arm="prompt", by=by, baseline=MEAN, repeats=["prompt"])
    return to_percent(gains.assign(model=" and ".join(judged["model"].unique())))


def _complete(values: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The values of questions that have one with every prompt, and how many have not."""
    queries = values.groupby(["dataset", "query_id"])["value"]
    is_whole = queries.transform("count") == queries.transform("size")
    return values[is_whole], values.loc[~is_whole, "query_id"].nunique()
