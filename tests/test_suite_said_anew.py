"""Ambiguous questions are counted by whoever assesses them, said anew, and compared with
clear ones and with themselves; twelve prompts stand beside Table 6, unreadable ones counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import factories
import numpy as np
import pandas as pd
import pytest

from vrag_kit.analysis import load_answers, paired_answers
from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.generation import build_prompt
from vrag_kit.generation.generators import prompt_text
from vrag_kit.papers import mrag_suite as mrag
from vrag_kit.synthetic.mrag_suite import (
    PUT_BACK,
    TRUTH,
    detect_ambiguity,
    load_prompt_sweep,
    load_prompts_by_dataset,
    open_ambiguous,
    open_judges,
    rewrite_questions,
)
from vrag_kit.synthetic.mrag_suite.ambiguity import RULE
from vrag_kit.synthetic.mrag_suite.prompts import FIELD_GUIDE
from vrag_kit.types import Benchmark, Context, Document, Prompt, Query

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


def judged(scores: dict[str, float], **columns: object) -> pd.DataFrame:
    told = {"query_id": list(scores), "score": list(scores.values()), "setting": "both", "k": 6}
    return factories.judged(**told, **columns)


def statuses(flagged: str, clear: str, unread: str = "") -> pd.DataFrame:
    told = dict.fromkeys(flagged, "AMBIGUOUS") | dict.fromkeys(clear, "CLEAR")
    told |= dict.fromkeys(unread, "")
    table = pd.DataFrame({"query_id": list(told), "status": list(told.values())})
    return table.assign(group=table["query_id"], explanation="", detail="")


def test_what_was_left_out_is_found_by_the_rule_and_put_back() -> None:
    originals = {"WebQA": guide()}
    asked, truth = open_ambiguous(originals, 0.5, seed=1)
    assessed = detect_ambiguity([RULE], asked, "unused") | truth
    (row,) = mrag.detection.detection_agreement(assessed).to_dict("records")
    assert (row["one"], row["other"], row["value"]) == (RULE, TRUTH, 1)
    assert (row["both"], row["neither"], row["only_one"], row["only_other"]) == (4, 4, 0, 0)
    assert (mrag.detection.flag_rates(assessed)["value"] == 50).all()
    anew, rewrites = rewrite_questions(
        asked, assessed[RULE], PUT_BACK, "unused", originals=originals
    )
    assert len(rewrites) == 4
    assert (rewrites["original"] != rewrites["question"]).all()
    assert anew["WebQA"].queries == originals["WebQA"].queries
    fingerprints = {each["WebQA"].fingerprint for each in (originals, asked, anew)}
    assert len(fingerprints) == 3
    assert open_ambiguous(originals, 0) == (originals, {})


def test_a_rewrite_that_cannot_be_read_leaves_its_question_as_it_was() -> None:
    benchmark = guide(2)
    rewrites = pd.DataFrame({"query_id": ["q0", "q1"], "question": ["Which year?", ""]})
    anew = mrag.detection.with_rewritten_questions(benchmark, rewrites)
    assert anew.queries["q0"].text == "Which year?"
    assert anew.queries["q0"].answers == ("red",)
    assert anew.queries["q1"] == benchmark.queries["q1"]
    with pytest.raises(VragError, match="query 'x' is not in guide"):
        mrag.detection.with_rewritten_questions(benchmark, rewrites.replace("q0", "x"))


def test_a_question_as_asked_is_compared_with_itself_said_anew_in_each_arm(tmp_path: Path) -> None:
    asked = guide(2)
    anew = mrag.detection.with_rewritten_questions(
        asked, pd.DataFrame({"query_id": ["q0"], "question": ["Which year?"]})
    )
    given = {"benchmark": "guide", "setting": "both", "draw": 0, "sample": 0}
    answers = pd.DataFrame({**given, "query_id": ["q0", "q1"], "group": "g0", "status": "ok"})
    answers = answers.assign(doc_ids=[("t",)] * 2, answer="red", score=[0.0, 1.0])
    better = answers.assign(score=1.0)
    arms = [
        [{"guide": each.assign(setting=setting)} for each in (answers, better)]
        for setting in ("both", "gt_only")
    ]
    mrag.detection.save_question_versions(
        arms, [{"guide": asked}, {"guide": anew}], tmp_path, "45_x", tmp_path
    )
    saved = load_answers(tmp_path)
    chosen = [{"version": version} for version in ("original", "rewritten")]
    pairs = paired_answers(saved, saved, choose_a=chosen[0], choose_b=chosen[1])
    assert pairs["setting"].tolist() == ["both", "both", "gt_only", "gt_only"]
    assert (pairs["score_b"] - pairs["score_a"]).tolist() == [1, 0, 1, 0]
    assert set(saved["question"]) >= {"Which year?", asked.queries["q0"].text}


class SaysTheSame:
    """A model that answers every question in the same words."""

    name, fingerprint = "same", "1"

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return ["The hindwings of this moth are red."] * len(prompts)


@pytest.mark.slow
def test_equal_answers_get_equal_scores_in_both_versions(tmp_path: Path) -> None:
    """A keypoint names the species, as the whole question does and the ambiguous one does
    not: held against that one, the answer would lack the name.
    """
    told = {"domain": "moths", "gold_claims": (f"The hindwings of {SPECIES} are red.",)}
    queries = {name: replace(each, metadata=told) for name, each in guide().queries.items()}
    originals = dict.fromkeys(mrag.datasets.DATASETS, replace(guide(), queries=queries))
    ambiguous, _ = open_ambiguous(originals, 1)
    prompts = load_prompts_by_dataset(FIELD_GUIDE, originals)
    judges = open_judges("rule", originals, tmp_path)
    shown = mrag.modes.SuiteEvidence(retrievers={}, k={"image": 1, "text": 1}).gold
    versions = []
    for suite in (ambiguous, originals):
        contexts = {name: shown(each) for name, each in suite.items()}
        what = ([SaysTheSame()], suite, contexts, tmp_path)
        said = mrag.modes.ask_suite(*what, prompt_sets=prompts)
        versions.append(mrag.modes.judge_suite(originals, said, judges))
    before, after = versions
    for name in mrag.datasets.DATASETS:
        assert before[name]["score"].tolist() == after[name]["score"].tolist()
    assert after["Chart-MRAG"]["score"].tolist() == [1.0] * 8


def test_assessors_agree_over_all_data_sets_and_what_is_unread_is_counted() -> None:
    one = {"a": statuses("12", "34"), "b": statuses("", "5", "6")}
    other = {"a": statuses("1", "234"), "b": statuses("", "56")}
    (row,) = mrag.detection.detection_agreement({"one": one, "other": other}).to_dict("records")
    assert [row[name] for name in ("both", "only_one", "only_other", "neither")] == [1, 1, 0, 3]
    # 4 of 5 agree; by chance 2/5 · 1/5 + 3/5 · 4/5 = 14/25
    assert row["value"] == pytest.approx((4 / 5 - 14 / 25) / (1 - 14 / 25))
    assert (row["n"], row["n_failed"]) == (5, 1)
    assert mrag.detection.detection_agreement({"one": one}).empty


def test_flags_stand_beside_table_1s() -> None:
    mine = {"Chart-MRAG": statuses("123", "4"), "mine": statuses("1", "2")}
    flags = mrag.detection.flag_rates({"rule": mine, "model": mine})
    assert flags["value"].tolist() == [75, 50, 75, 50]
    paper = flags.set_index("dataset")["published"]
    assert 80 < paper["Chart-MRAG"].iloc[0] < 90
    assert np.isnan(paper["mine"].iloc[0])


def test_a_flagged_question_is_compared_with_clear_ones_and_with_itself() -> None:
    told = {"mine": statuses("ab", "cd"), "clear": statuses("", "x")}
    pairs = pd.DataFrame({"ambiguous": list("ab"), "clear": list("cd"), "group": list("ab")})
    pairs = pairs.assign(clear_group=list("cd"))
    told_of = {"metric": "webqa_f1", "stratum": "all questions"}
    before = judged({"a": 0.0, "b": 0.0, "c": 1.0, "d": 0.5}, **told_of)
    after = judged({"a": 1.0, "b": 0.5, "c": 1.0, "d": 0.5}, **told_of)
    alone = judged({"x": 1.0}, **told_of)
    table = mrag.detection.ambiguity_contrasts(
        told,
        pairs.assign(dataset="mine"),
        {"mine": before, "clear": alone},
        {"mine": after, "clear": alone},
    )
    assert set(table["dataset"]) == {"mine"}
    value = table.set_index("contrast")["value"]
    # (0 − 1 + 0 − 0.5) / 2; (1 − 1 + 0.5 − 0.5) / 2; (1 + 0.5) / 2
    assert value.to_dict() == {
        "ambiguous − clear": -75,
        "rewritten − clear": 0,
        "rewritten − original": 75,
    }
    assert (table["n"] == 2).all()
    assert set(table["metric"]) == {"webqa_f1"}
    assert table["baseline"].tolist() == ["clear", "clear", "original"]
    nothing = {"clear": alone}
    assert mrag.detection.ambiguity_contrasts(
        told, pairs.assign(dataset="mine"), nothing, nothing
    ).empty


def test_gold_evidence_alone_is_at_most_so_many_of_each_modality(tmp_path: Path) -> None:
    picture = ImageFile(tmp_path / "p.png")
    texts = {f"t{n}": Document(doc_id=f"t{n}", text="red") for n in range(3)}
    corpus = {**texts, "i": Document(doc_id="i", image=picture)}
    gold = {"t2": 1, "t0": 1, "i": 1, "t1": 0}
    benchmark = replace(guide(2), corpus=corpus, qrels={"q0": gold, "q1": {"t1": 0}})
    found = mrag.modes.SuiteEvidence(retrievers={}, k={"image": 1, "text": 1}, cache_dir=tmp_path)
    (context,) = found.gold(benchmark)
    assert (context.query_id, context.setting) == ("q0", "gt_only")
    assert context.doc_ids[0] == "i"
    assert len(context.doc_ids) == 2


def test_some_questions_of_each_are_among_more_of_them() -> None:
    suite = {"guide": guide()}
    few, more = (set(mrag.modes.sample_per_dataset(suite, n)["guide"].queries) for n in (3, 5))
    assert (len(few), len(more)) == (3, 5)
    assert few < more
    assert mrag.modes.sample_per_dataset(suite, None) == suite


def test_the_papers_parts_stand_behind_the_words_that_the_shipped_answerers_know() -> None:
    suite = {"guide": guide(1)}
    known = load_prompts_by_dataset(FIELD_GUIDE, suite)["guide"]
    prompts = load_prompt_sweep(FIELD_GUIDE, list(mrag.prompts.PROMPTS), suite)["guide"]
    assert list(prompts) == list(mrag.prompts.PROMPTS)
    context = Context(query_id="q0", setting="both", k=1, doc_ids=("t",))
    plain = prompt_text(build_prompt(suite["guide"], context, known))
    for name, one in prompts.items():
        words = prompt_text(build_prompt(suite["guide"], context, one))
        behind = words.removeprefix(plain)
        assert len(behind) + len(plain) == len(words)
        assert mrag.prompts.EXAMPLES[mrag.prompts.PROMPTS[name].example] in behind
        assert ("expert in moths" in behind) is (mrag.prompts.PROMPTS[name].init == "expert")
    (own,) = load_prompt_sweep("paper", ["plain-ex1-direct"], suite)["guide"].values()
    assert "Short answer:" in prompt_text(build_prompt(suite["guide"], context, own))


def sweep(scores: dict[str, dict[str, float]]) -> pd.DataFrame:
    tables = [judged(of, metric="webqa_f1").assign(prompt=prompt) for prompt, of in scores.items()]
    return pd.concat(tables, ignore_index=True)


def test_a_chosen_prompt_stands_beside_table_6s_best() -> None:
    names = [f"g{number}" for number in range(8)]
    good, bad = dict.fromkeys(names, 1.0), dict.fromkeys(names, 0.5)
    both = {"plain-ex1-direct": bad, "expert-ex3-direct": good}
    sweeps = {name: mrag.sweep.prompt_sweep(sweep(both)) for name in ("VisRAG-Plot", "mine")}
    table = mrag.sweep.compare_chosen_to_paper(sweeps)
    assert table["selected"].tolist() == ["expert-ex3-direct"] * 2
    planted = {mrag.sweep.NO_EVIDENCE: good, "plain-ex1-direct": bad}
    row = mrag.sweep.compare_chosen_to_paper({"mine": mrag.sweep.prompt_sweep(sweep(planted))}).loc[
        "mine"
    ]
    assert row[["selected", "the highest reported"]].tolist() == ["plain-ex1-direct", "50.0"]
    printed = table[["printed (Table 6)", "printed mean"]]
    assert printed.loc["VisRAG-Plot"].tolist() == ["expert-ex3-direct", "36.5"]
    assert printed.loc["mine"].tolist() == ["–", "–"]
    # 1 less (1 + 0.5) / 2, on all eight
    apart = {"mine": sweep(both).assign(stratum="all questions")}
    gains = mrag.sweep.prompt_gains(apart).set_index("prompt")
    row = gains.loc["expert-ex3-direct", ["dataset", "model", "value", "n", "metric"]]
    assert row.tolist() == ["mine", "m", 25, 8, "webqa_f1"]


def test_replies_that_cannot_be_read_are_counted_by_prompt() -> None:
    table = sweep({"one": {"a": 1.0, "b": 1.0}, "two": {"a": 1.0, "b": np.nan}})
    table.loc[3, "status"] = "unreadable"
    assert mrag.sweep.parse_rate_table({"mine": table})["mine"].to_dict() == {
        "one": "2 of 2",
        "two": "1 of 2",
    }


def test_the_sweep_is_drawn_by_rank_and_says_that_of_the_chosen_prompt() -> None:
    names = [f"g{number}" for number in range(8)]
    scores = {name: dict.fromkeys(names, value) for name, value in (("one", 0.25), ("two", 0.75))}
    tables = {"first": sweep(scores), "second": sweep({"two": scores["two"]})}
    swept = {name: mrag.sweep.prompt_sweep(table) for name, table in tables.items()}
    figure = mrag.figures.sweep_figure(swept, "model")
    first, _ = figure.axes
    chosen = max(first.lines, key=lambda line: line.get_linewidth())
    assert list(chosen.get_ydata()) == [1, 1]  # "two", on both halves
    assert "rank 1 of 2 on first, 1 of 1 on second" in figure.get_label()


def test_only_parts_that_a_prompt_has_are_shown() -> None:
    table = mrag.prompts.prompt_parts_table(["plain-ex1-direct", "expert-ex1-direct"])
    assert table.index.tolist() == [
        ("opens", "plain"),
        ("opens", "expert"),
        ("style", "ex1"),
        ("reasoning", "direct"),
    ]
    assert table.loc[("style", "ex1"), "words"] == mrag.prompts.EXAMPLES["ex1"]
    assert len(mrag.prompts.prompt_parts_table(list(mrag.prompts.PROMPTS))) == 2 + 3 + 2
    with pytest.raises(VragError, match="expected one of plain-ex1-direct"):
        mrag.prompts.prompt_parts_table(["plain"])


def test_checks_of_0_are_held_together_corrected_for_their_number() -> None:
    """Holm by hand: 0.01 × 3, then 0.03 × 2, and no smaller than before."""
    table = pd.DataFrame({"contrast": [mrag.detection.CHECK] * 3 + ["ambiguous − clear"]})
    table = table.assign(evidence_source="gold", dataset="d", stratum="s", model="m")
    table = table.assign(value=1.0, ci_low=0.0, ci_high=2.0, n=9, p=[0.03, 0.01, 0.5, 0.001])
    assert mrag.detection.oracle_rewrite_checks(table)["p_holm"].tolist() == pytest.approx(
        [0.06, 0.03, 0.5]
    )
    assert mrag.detection.oracle_rewrite_checks(table.tail(1)).empty
