"""MRAG-Bench's results by scenario: means over questions with the paper's weights, whatever an
edition holds; gains on the same questions; letters and options under rotation.
"""

from __future__ import annotations

from collections.abc import Mapping

import factories
import pandas as pd
import pytest
from mrag_rows import answered, four_questions

from vrag_kit.generation import ask_models
from vrag_kit.papers import published
from vrag_kit.papers.mrag_bench import people, results, settings
from vrag_kit.papers.mrag_bench.settings import ASPECTS, QUESTIONS
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import Workspace

FOUR = four_questions()
"""The first option is right; query 2 has "EastAsia", "SouthEastAsia", "Africa", "Europe"."""


def edition(counts: Mapping[str, int]) -> Benchmark:
    """Questions without images: so many of each scenario, every second one on a new species."""
    scenarios = [scenario for scenario, count in counts.items() for _ in range(count)]
    queries = []
    for number, scenario in enumerate(scenarios):
        about = {"scenario": scenario, "source": "new" if number % 2 else "known species"}
        queries.append(Query(query_id=f"q{number}", text="?", group=f"q{number}", metadata=about))
    return factories.benchmark(queries)


def judged(benchmark: Benchmark, right: Mapping[str, float], **arm: object) -> pd.DataFrame:
    """Answers of which in each scenario the first are right, by its share."""
    scenarios = pd.Series([query.metadata["scenario"] for query in benchmark.queries.values()])
    n, place = scenarios.map(scenarios.value_counts()), scenarios.groupby(scenarios).cumcount()
    scores = (place < (scenarios.map(right) * n).round()).astype(float)
    table = factories.judged(
        score=scores.tolist(), marks="", **{"setting": "no_rag", "k": 0, **arm}
    )
    return results.with_scenarios(table, benchmark)


EVEN = edition(dict.fromkeys(QUESTIONS, 20))
EVEN_WEIGHTS = results.scenario_weights(EVEN)
WEIGHTS = pd.Series(QUESTIONS) / 1353
PRINTED = published("mrag_bench", 3).query("model == 'LLaVA-OneVision' and setting == 'gt_rag'")
SHARES = (PRINTED.set_index("scenario")["value"] / 100).to_dict()


@pytest.mark.slow
def test_on_the_papers_data_overall_is_the_mean_that_the_paper_publishes():
    whole = edition(QUESTIONS)
    assert results.is_paper_data(whole)
    assert results.scenario_weights(whole) is None
    found = results.accuracy_by_scenario(judged(whole, SHARES), weights=None, by=["model"])
    found = found.query("metric == 'accuracy' and level != 'aspect'").set_index("scenario")
    assert found.loc["overall", ["value", "n"]].tolist() == pytest.approx([58.98, 1353], abs=0.005)
    for scenario in QUESTIONS:
        assert found["value"][scenario] == pytest.approx(100 * SHARES[scenario], abs=0.005)


@pytest.mark.slow
def test_elsewhere_overall_and_aspects_have_the_papers_weights_in_the_order_of_table_3():
    assert not results.is_paper_data(EVEN)
    answers = judged(EVEN, SHARES)
    found = results.accuracy_by_scenario(answers, weights=EVEN_WEIGHTS, by=["model"])
    found = found.query("metric == 'accuracy'")
    assert found["scenario"].tolist() == ["overall", *ASPECTS, *QUESTIONS]
    table = found.set_index(["level", "scenario"])
    own = table.loc["scenario", "value"]
    assert table["value"]["overall", "overall"] == pytest.approx((own * WEIGHTS).sum())
    four = list(ASPECTS["transformative"])
    row = table.loc["aspect", "transformative"]
    assert row["value"] == pytest.approx((own * WEIGHTS)[four].sum() / WEIGHTS[four].sum())
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert row["n"] == 80


def test_gains_are_paired_and_p_is_corrected_over_scenarios_within_a_setting():
    better = {name: 0.3 + 0.05 * place for place, name in enumerate(QUESTIONS)}
    answers = [judged(EVEN, dict.fromkeys(QUESTIONS, 0.3)), judged(EVEN, better, setting="gt_rag")]
    found = results.gains_by_scenario(pd.concat(answers), weights=EVEN_WEIGHTS, by=["model"])
    apart = found.query("level == 'scenario'").set_index("scenario")
    assert apart["value"].tolist() == pytest.approx([5 * place for place in range(9)])
    smallest = apart.loc[apart["p"].idxmin()]
    assert smallest["p_holm"] == pytest.approx(min(1.0, 9 * smallest["p"]))
    (whole,) = found.query("level == 'overall'").to_dict("records")
    assert whole["p_holm"] == whole["p"]
    assert whole["value"] == pytest.approx((apart["value"] * WEIGHTS).sum())


def test_whether_positions_differ_is_one_question_with_several_answers():
    shares = {1: 0.3, 2: 0.35, 3: 0.5}
    tables = [judged(EVEN, dict.fromkeys(QUESTIONS, shares[at]), position=at) for at in shares]
    how = {"weights": EVEN_WEIGHTS, "arm": "position", "baseline": 1}
    found = results.gains_by_scenario(pd.concat(tables), **how)
    whole = found.query("level == 'overall' and stratum == 'all questions'").set_index("position")
    assert whole["value"].to_dict() == pytest.approx({2: 5, 3: 20})
    assert whole["p_holm"][3] == pytest.approx(2 * whole["p"][3])
    words = results.findings(found, "accuracy at position {position}", "that at {baseline}")
    assert words[1].startswith("accuracy at position 3 is higher than that at 1 by 20.0 points")


def test_without_answers_every_table_is_empty(tmp_path):
    at, prompts = Workspace(answers_dir=tmp_path), settings.load_prompts("paper")
    table = results.judge_choices(FOUR, ask_models([], FOUR, [], at, prompts=prompts))
    found = results.accuracy_by_scenario(table, weights=None)
    assert found.empty
    assert results.scenario_table(found).empty
    assert results.scenario_table(results.settings_at_chance(found)).empty
    assert results.gains_by_scenario(table, weights=None).empty
    assert people.inter_rater_agreement(table, FOUR).empty


def test_an_answer_keeps_its_letter_or_its_option_under_rotation():
    tables = []
    for by in range(4):
        world = settings.rotate_options(FOUR, by)
        said = {"0": "A", "2": "ABCD"[by], "3": f"({'BCDA'[by]})", "1": "none of them"}
        table = results.with_options(answered(world, said, "no_rag"), world)
        tables.append(table.assign(rotation=by))
    found = results.rotation_consistency(pd.concat(tables), weights=None).set_index("metric")
    # query 2 and 3 keep their option, 2 the right one; 0 says A, whatever stands there
    assert found.loc["same option in all", ["value", "n"]].tolist() == [50, 4]
    assert found.loc["right in all", "value"] == 25


def test_one_question_of_each_scenario_is_drawn_with_its_images(drawn):
    odd = next(name for name, q in drawn.queries.items() if q.metadata["scenario"] == "scope")
    scores = {"query_id": odd, "model": "m", "no_rag": 1.0, "gt_rag": 1.0, "retrieved_rag": 0.0}
    table = pd.DataFrame([scores | {"scenario": "scope"}])
    card = results.examples_figure(drawn, table, "Finding").axes[0]
    words = [text.get_text() for text in card.texts]
    assert {"✓ no examples", "✓ gold", "✗ retrieved", "scope"} <= set(words)
    query = drawn.queries[odd]
    assert f"({query.metadata['letter']}) {query.answers[0]} ✓" in "\n".join(words)
    assert len(card.images) == 3
