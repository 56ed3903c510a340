"""MRAG-Bench's results by scenario: means over questions as the paper mixes them, whatever
an edition holds, and gains on the same questions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
import pytest

from vrag_kit.analysis import mean_scores, to_percent
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers import published, published_gains
from vrag_kit.papers.mrag_bench.audit import ASPECTS, QUESTIONS
from vrag_kit.papers.mrag_bench.results import is_paper_data
from vrag_kit.papers.published import format_spread
from vrag_kit.plotting import concat_sources
from vrag_kit.plotting.save import order_columns
from vrag_kit.types import Benchmark, Query


def edition(counts: Mapping[str, int]) -> Benchmark:
    """Questions without pictures: so many of each scenario, every second one new."""
    queries = {}
    for scenario, count in counts.items():
        for number in range(count):
            query_id = f"{scenario}-{number}"
            source = "new" if number % 2 else "known species"
            metadata = {"scenario": scenario, "source": source}
            queries[query_id] = Query(
                query_id=query_id, text="?", group=query_id, metadata=metadata
            )
    return Benchmark(name="e", fingerprint="e", queries=queries, corpus={}, qrels={})


def judged(
    benchmark: Benchmark, right: Mapping[str, float], setting: str = "no_rag"
) -> pd.DataFrame:
    """Answers of which in each scenario the first are right, as many as its share says."""
    rows = []
    counts: dict[str, int] = {}
    for query in benchmark.queries.values():
        scenario = str(query.metadata["scenario"])
        place = counts[scenario] = counts.get(scenario, 0) + 1
        of_all = sum(each.metadata["scenario"] == scenario for each in benchmark.queries.values())
        score = float(place <= round(right[scenario] * of_all))
        rows.append({"query_id": query.query_id, "group": query.group, "score": score})
    arm = {
        "model": "m",
        "setting": setting,
        "k": 0,
        "draw": 0,
        "status": "ok",
        "abstained": 0.0,
        "marks": "",
    }
    return paper.results.with_scenarios(pd.DataFrame(rows).assign(**arm), benchmark)


def of(table: pd.DataFrame, scenario: str, level: str) -> pd.Series:
    (row,) = table.query("scenario == @scenario and level == @level").to_dict("records")
    return pd.Series(row)


PAPER = edition(QUESTIONS)
EVEN = edition(dict.fromkeys(QUESTIONS, 20))
PRINTED = published("mrag_bench", 3).query("model == 'LLaVA-OneVision' and setting == 'gt_rag'")
SHARES = (PRINTED.set_index("scenario")["value"] / 100).to_dict()


def scores(table: pd.DataFrame) -> pd.DataFrame:
    return to_percent(table).query("metric == 'accuracy'")


@pytest.mark.slow
def test_on_the_papers_data_overall_is_the_plain_mean_that_the_paper_prints() -> None:
    assert is_paper_data(PAPER)
    assert paper.results.scenario_weights(PAPER) is None
    found = scores(
        paper.results.accuracy_by_scenario(
            judged(PAPER, SHARES), weights=paper.results.scenario_weights(PAPER)
        )
    )
    assert of(found, "overall", "overall")["value"] == pytest.approx(58.98, abs=0.005)
    assert of(found, "overall", "overall")["n"] == 1353
    for scenario in QUESTIONS:
        printed = 100 * SHARES[scenario]
        assert of(found, scenario, "scenario")["value"] == pytest.approx(printed, abs=0.005)


@pytest.mark.slow
def test_with_as_many_questions_in_each_scenario_overall_is_mixed_like_the_paper() -> None:
    mix = paper.results.scenario_weights(EVEN)
    assert not is_paper_data(EVEN)
    answers = judged(EVEN, SHARES)
    found = scores(paper.results.accuracy_by_scenario(answers, weights=mix))
    own = found.query("level == 'scenario'").set_index("scenario")["value"]
    weights = pd.Series(QUESTIONS)
    expected = (own * weights).sum() / 1353
    assert of(found, "overall", "overall")["value"] == pytest.approx(expected)
    assert abs(expected - 58.98) < abs(scores(mean_scores(answers))["value"].iloc[0] - 58.98)
    four = list(ASPECTS["transformative"])
    expected = (own * weights)[four].sum() / weights[four].sum()
    row = of(found, "transformative", "aspect")
    assert row["value"] == pytest.approx(expected)
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert row["n"] == 80


def test_a_part_of_the_paper_counts_as_the_papers_data() -> None:
    assert is_paper_data(edition({name: QUESTIONS[name] for name in ("angle", "others")}))
    assert not is_paper_data(edition({"angle": 322, "others": 119}))


def test_rows_come_in_the_order_of_table_3_with_aspects_before_scenarios() -> None:
    found = paper.results.accuracy_by_scenario(
        judged(EVEN, SHARES), weights=paper.results.scenario_weights(EVEN)
    )
    names = found.query("metric == 'accuracy'")["scenario"].tolist()
    assert names == ["overall", *ASPECTS, *QUESTIONS]


def test_gains_are_paired_and_p_is_corrected_over_scenarios_within_a_setting() -> None:
    alone = judged(EVEN, dict.fromkeys(QUESTIONS, 0.3))
    better = {name: 0.3 + 0.05 * place for place, name in enumerate(QUESTIONS)}
    answers = pd.concat([alone, judged(EVEN, better, "gt_rag")], ignore_index=True)
    found = paper.results.gains_by_scenario(answers, weights=paper.results.scenario_weights(EVEN))
    apart = found.query("level == 'scenario'")
    assert apart["value"].tolist() == pytest.approx([0.05 * place for place in range(9)])
    smallest = apart.loc[apart["p"].idxmin()]
    assert smallest["p_holm"] == pytest.approx(min(1.0, 9 * smallest["p"]))
    whole = of(found, "overall", "overall")
    assert whole["p_holm"] == whole["p"]
    weights = pd.Series(QUESTIONS) / 1353
    assert whole["value"] == pytest.approx((apart.set_index("scenario")["value"] * weights).sum())


def test_whether_places_differ_is_one_question_with_as_many_answers_as_places() -> None:
    shares = {1: 0.3, 2: 0.35, 3: 0.5}
    tables = [
        judged(EVEN, dict.fromkeys(QUESTIONS, share)).assign(place=place)
        for place, share in shares.items()
    ]
    found = paper.results.gains_by_scenario(
        pd.concat(tables, ignore_index=True),
        weights=paper.results.scenario_weights(EVEN),
        arm="place",
        baseline=1,
    )
    whole = found.query("level == 'overall'").set_index("place")
    assert whole["value"].to_dict() == pytest.approx({2: 0.05, 3: 0.2})
    assert whole["p_holm"][3] == pytest.approx(2 * whole["p"][3])


def test_sources_stand_apart_and_failures_are_counted_and_left_out() -> None:
    answers = judged(EVEN, SHARES)
    lost = answers.assign(score=answers["score"].mask(answers["query_id"] == "angle-0"))
    by = ["model", "setting", "stratum"]
    found = paper.results.accuracy_by_scenario(
        lost, weights=paper.results.scenario_weights(EVEN), by=by
    )
    angle = found.query("level == 'scenario' and scenario == 'angle' and metric == 'accuracy'")
    assert angle.set_index("stratum")["n"].to_dict() == {"seen species": 9, "unseen species": 10}
    assert angle.set_index("stratum")["n_failed"].tolist() == [1, 0]
    cells = paper.results.scenario_table(scores(found), columns=["stratum"])
    row = cells.loc[("scenario", "angle", 10)]
    assert row["seen species"].endswith("(n = 9, 1 failed)")


def test_a_table_has_its_rows_in_the_order_of_the_results() -> None:
    results = scores(
        paper.results.accuracy_by_scenario(
            judged(EVEN, SHARES), weights=paper.results.scenario_weights(EVEN)
        )
    )
    told = paper.results.scenario_table(results)
    names = [(level, scenario) for level, scenario, _ in told.index]
    assert names[0] == ("overall", "overall")
    assert names[3:] == [("aspect", "others"), *(("scenario", name) for name in QUESTIONS)]


def test_gains_printed_for_gpt_4o_are_those_of_its_own_baseline() -> None:
    rows = published_gains("mrag_bench", 3, ["no_rag"])
    rows = rows.set_index(["model", "setting", "scenario"])["value"]
    # the paper prints +7.28 and −34.74
    assert rows["GPT-4o", "retrieved_rag", "deformation"] == pytest.approx(-6.31)
    assert rows["GPT-4o", "retrieved_rag", "incomplete"] == pytest.approx(-21.15)
    assert math.isclose(rows["LLaVA-OneVision", "gt_rag", "overall"], 5.69, abs_tol=1e-9)


def test_what_printed_values_reach_is_read_with_its_signs() -> None:
    printed = pd.DataFrame({"of": ["gap"] * 3, "value": [-22.4, -7.9, -13.1]})
    assert format_spread(printed, ["of"])["gap"] == "−22.4 to −7.9, median −13.1"


def test_what_the_papers_models_reach_is_told_by_scenario() -> None:
    told = paper.results.published_range()
    assert told.index.tolist() == ["overall", *QUESTIONS]
    assert told.loc["overall", "no_rag: 14 models"] == "26.8 to 68.7, median 46.5"
    assert told.loc["angle", "no_rag: people"] == "25.2"


def test_printed_gains_stand_in_a_csv_as_what_they_are() -> None:
    """GPT-4o has 68.68 without examples and 74.50 with the right ones (Table 3)."""
    gains = published_gains("mrag_bench", 3, ["no_rag"], model_group=paper.results.MODEL_GROUPS)
    rows = order_columns(concat_sources({"MRAG-Bench, reported": gains}))
    told = rows[["source", "metric", "unit", "baseline"]].drop_duplicates().to_numpy().tolist()
    assert told == [["MRAG-Bench, reported", "difference in accuracy", "points", "no_rag"]]
    table = published("mrag_bench", 3).query("model == 'GPT-4o' and scenario == 'overall'")
    value = table.set_index("setting")["value"]
    row = rows.query("model == 'GPT-4o' and scenario == 'overall' and setting == 'gt_rag'")
    assert row["value"].item() == pytest.approx(value["gt_rag"] - value["no_rag"])
    assert set(rows["level"]) == {"overall", "scenario"}
