"""MRAG-Bench's results by scenario: means over questions with the paper's weights, whatever an
edition holds; gains on the same questions; letters and options under rotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest
from mrag_rows import answered, four_questions

from vrag_kit.generation import ask_models
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers import published
from vrag_kit.papers.mrag_bench.results import is_paper_data
from vrag_kit.papers.mrag_bench.settings import ASPECTS, QUESTIONS
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import Workspace

FOUR = four_questions()
"""The first option is right; query 2 has "EastAsia", "SouthEastAsia", "Africa", "Europe"."""


def edition(counts: Mapping[str, int]) -> Benchmark:
    """Questions without images: so many of each scenario, every second one on a new species."""
    queries = {}
    for scenario, count in counts.items():
        for number in range(count):
            name = f"{scenario}-{number}"
            about = {"scenario": scenario, "source": "new" if number % 2 else "known species"}
            queries[name] = Query(query_id=name, text="?", group=name, metadata=about)
    return Benchmark(name="e", fingerprint="e", queries=queries, corpus={}, qrels={})


def judged(benchmark: Benchmark, right: Mapping[str, float], **arm: object) -> pd.DataFrame:
    """Answers of which in each scenario the first are right, by its share."""
    scenarios = pd.Series({name: q.metadata["scenario"] for name, q in benchmark.queries.items()})
    n, place = scenarios.map(scenarios.value_counts()), scenarios.groupby(scenarios).cumcount()
    score = (place < (scenarios.map(right) * n).round()).astype(float)
    table = pd.DataFrame({"query_id": score.index, "group": score.index, "score": score.to_numpy()})
    arm = {"model": "m", "setting": "no_rag", "k": 0, "draw": 0, **arm}
    table = table.assign(**arm, status="ok", abstained=0.0, marks="")
    return paper.results.with_scenarios(table, benchmark)


def cell(table: pd.DataFrame, scenario: str, level: str) -> pd.Series:
    (row,) = table.query("scenario == @scenario and level == @level").to_dict("records")
    return pd.Series(row)


EVEN = edition(dict.fromkeys(QUESTIONS, 20))
WEIGHTS = pd.Series(QUESTIONS) / 1353
PRINTED = published("mrag_bench", 3).query("model == 'LLaVA-OneVision' and setting == 'gt_rag'")
SHARES = (PRINTED.set_index("scenario")["value"] / 100).to_dict()


def accuracy(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    weights = paper.results.scenario_weights(benchmark)
    found = paper.results.accuracy_by_scenario(answers, weights=weights, by=["model", "setting"])
    return found.query("metric == 'accuracy'")


@pytest.mark.slow
def test_on_the_papers_data_overall_is_the_mean_that_the_paper_publishes() -> None:
    whole = edition(QUESTIONS)
    assert is_paper_data(whole)
    assert paper.results.scenario_weights(whole) is None
    found = accuracy(whole, judged(whole, SHARES))
    assert cell(found, "overall", "overall")["value"] == pytest.approx(58.98, abs=0.005)
    assert cell(found, "overall", "overall")["n"] == 1353
    for scenario in QUESTIONS:
        reported = 100 * SHARES[scenario]
        assert cell(found, scenario, "scenario")["value"] == pytest.approx(reported, abs=0.005)


@pytest.mark.slow
def test_elsewhere_overall_and_aspects_have_the_papers_weights_in_the_order_of_table_3() -> None:
    assert not is_paper_data(EVEN)
    found = accuracy(EVEN, judged(EVEN, SHARES))
    assert found["scenario"].tolist() == ["overall", *ASPECTS, *QUESTIONS]
    own = found.query("level == 'scenario'").set_index("scenario")["value"]
    assert cell(found, "overall", "overall")["value"] == pytest.approx((own * WEIGHTS).sum())
    four = list(ASPECTS["transformative"])
    expected = (own * WEIGHTS)[four].sum() / WEIGHTS[four].sum()
    row = cell(found, "transformative", "aspect")
    assert row["value"] == pytest.approx(expected)
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert row["n"] == 80


def test_gains_are_paired_and_p_is_corrected_over_scenarios_within_a_setting() -> None:
    better = {name: 0.3 + 0.05 * place for place, name in enumerate(QUESTIONS)}
    answers = [judged(EVEN, dict.fromkeys(QUESTIONS, 0.3)), judged(EVEN, better, setting="gt_rag")]
    weights = paper.results.scenario_weights(EVEN)
    both = pd.concat(answers, ignore_index=True)
    found = paper.results.gains_by_scenario(both, weights=weights, by=["model"])
    apart = found.query("level == 'scenario'")
    assert apart["value"].tolist() == pytest.approx([5 * place for place in range(9)])
    smallest = apart.loc[apart["p"].idxmin()]
    assert smallest["p_holm"] == pytest.approx(min(1.0, 9 * smallest["p"]))
    whole = cell(found, "overall", "overall")
    assert whole["p_holm"] == whole["p"]
    assert whole["value"] == pytest.approx((apart.set_index("scenario")["value"] * WEIGHTS).sum())


def test_whether_positions_differ_is_one_question_with_several_answers() -> None:
    shares = {1: 0.3, 2: 0.35, 3: 0.5}
    tables = [judged(EVEN, dict.fromkeys(QUESTIONS, shares[at]), position=at) for at in shares]
    how = {"weights": paper.results.scenario_weights(EVEN), "arm": "position", "baseline": 1}
    found = paper.results.gains_by_scenario(pd.concat(tables, ignore_index=True), **how)
    whole = found.query("level == 'overall' and stratum == 'all questions'").set_index("position")
    assert whole["value"].to_dict() == pytest.approx({2: 5, 3: 20})
    assert whole["p_holm"][3] == pytest.approx(2 * whole["p"][3])
    words = paper.results.findings(found, "accuracy at position {position}", "that at {baseline}")
    assert words[1].startswith("accuracy at position 3 is higher than that at 1 by 20.0 points")


def test_without_answers_every_table_is_empty(tmp_path: Path) -> None:
    none = ask_models(
        [], FOUR, [], Workspace(answers_dir=tmp_path), prompts=paper.settings.load_prompts("paper")
    )
    table = paper.results.judge_choices(FOUR, none)
    found = paper.results.accuracy_by_scenario(table, weights=None)
    assert found.empty
    assert paper.results.scenario_table(found).empty
    assert paper.results.scenario_table(paper.results.settings_at_chance(found)).empty
    assert paper.results.gains_by_scenario(table, weights=None).empty
    assert paper.people.inter_rater_agreement(table, FOUR).empty


def letters(rotation: int, **words: str | None) -> pd.DataFrame:
    """Answers to the questions with rotated options, with their letters."""
    world = paper.settings.rotate_options(FOUR, rotation)
    said = {name.removeprefix("q"): answer for name, answer in words.items()}
    table = answered(world, {name: answer or "" for name, answer in said.items()}, "no_rag")
    table["answer"] = list(said.values())
    table["score"] = table["score"].where(table["answer"].notna())
    return paper.results.with_options(table, world).assign(rotation=rotation)


def test_an_answer_keeps_its_letter_or_its_option_under_rotation() -> None:
    tables = [
        letters(by, q0="A", q2="ABCD"[by], q3=f"({'BCDA'[by]})", q1="none of them")
        for by in range(4)
    ]
    found = paper.results.rotation_consistency(pd.concat(tables), weights=None).set_index("metric")
    # query 2 and 3 keep their option, 2 the right one; 0 says A, whatever stands there
    assert found.loc["same option in all", ["value", "n"]].tolist() == [50, 4]
    assert found.loc["right in all", "value"] == 25


def test_one_question_of_each_scenario_is_drawn_with_its_images(drawn: Benchmark) -> None:
    odd = next(name for name, q in drawn.queries.items() if q.metadata["scenario"] == "scope")
    scores = {"query_id": odd, "model": "m", "no_rag": 1.0, "gt_rag": 1.0, "retrieved_rag": 0.0}
    table = pd.DataFrame([scores | {"scenario": "scope"}])
    card = paper.results.examples_figure(drawn, table, "Finding").axes[0]
    words = [text.get_text() for text in card.texts]
    assert {"✓ no examples", "✓ gold", "✗ retrieved", "scope"} <= set(words)
    query = drawn.queries[odd]
    assert f"({query.metadata['letter']}) {query.answers[0]} ✓" in "\n".join(words)
    assert len(card.images) == 3
