"""A verdict against the paper only on the paper's data, and only beyond the noise of both; failures bound what they could change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.analysis import accuracy, beside_printed, best_top_k, held_against_paper, in_percent, is_papers_data, over_draws, printed, published
from vrag_kit.benchmarks import load_other_corpus, load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark

NAME = "Qwen-Qwen2.5-VL-7B-Instruct"


def judged(scores: dict[tuple[str, int], list[float]], *, model: str = NAME, queries: int = 1, spread: float = np.nan) -> pd.DataFrame:
    """One query with a score for each draw of each (setting, k)."""
    rows = [(model, setting, k, draw, f"q{q}", score, 0.0, "ok", spread) for (setting, k), each in scores.items() for draw, score in enumerate(each) for q in range(queries)]
    return pd.DataFrame(rows, columns=["model", "setting", "k", "draw", "query_id", "score", "abstained", "status", "spread"])


@pytest.fixture
def papers(guide: Benchmark) -> Benchmark:
    """A benchmark with the paper's four numbers: 374 queries, 99,017 query-image pairs, 6,055 clues (16.19 a query, 6.12 %)."""
    first = next(iter(guide.queries.values()))
    names = [f"q{i}" for i in range(374)]
    sizes, clues = [265] * 373 + [99_017 - 373 * 265], [16] * 303 + [17] * 71
    labels = {name: {f"{name}/{i}": int(i < some) for i in range(size)} for name, size, some in zip(names, sizes, clues, strict=True)}
    return replace(guide, queries={name: replace(first, query_id=name) for name in names}, qrels=labels, pools=None)


def test_the_papers_data_are_known_by_what_the_paper_prints_of_them(papers: Benchmark, guide: Benchmark) -> None:
    assert is_papers_data(papers)
    assert not is_papers_data(guide)
    assert not is_papers_data(papers.subset(list(papers.queries)[1:]))


def test_on_other_data_there_is_no_verdict(guide: Benchmark) -> None:
    table = judged({("gt_clue", 1): [0.5, 0.4]})
    results = in_percent(accuracy(table, {"q0": "g"})).query("metric == 'accuracy'")
    found = beside_printed(results, printed(published("visual_rag", table=3)), guide, table)
    assert found.loc[("GT clue (1 image)", 1), "GPT-4o (paper, different data)"] == "59.81"
    assert found.loc[("GT clue (1 image)", 1), NAME].startswith("45.0")
    assert "verdict" not in found


@pytest.mark.parametrize(("ours", "verdict"), [(0.4179, "agrees"), (0.4179 + 0.027, "agrees"), (0.4179 + 0.028, "above the paper"), (0.4179 - 0.028, "below the paper")])
def test_a_difference_is_held_against_the_spread_between_runs_of_both(papers: Benchmark, ours: float, verdict: str) -> None:
    # Qwen2.5VL under GT clue: 41.79, standard deviation over five runs 2.2134. With five runs on either side: 1.96 · 2.2134 · √(1/5 + 1/5) = 2.744 points.
    table = judged({("gt_clue", 1): [ours] * 5})
    (row,) = beside_printed(in_percent(accuracy(table, {"q0": "g"})), printed(published("visual_rag", table=3)), papers, table).to_dict("records")
    assert row["allowed"] == 2.7
    assert row["verdict"] == verdict


def test_a_cell_that_the_paper_ran_once_is_held_against_the_models_spread_over_all_its_cells(papers: Benchmark) -> None:
    # Printed deviations of Qwen2.5VL: 2.213 (Table 13), 1.303, 0.831, 0.724, 1.531, 1.688, 1.588 (Table 15); one run on either side.
    spread = np.sqrt(np.mean(np.square([2.213, 1.303, 0.831, 0.724, 1.531, 1.688, 1.588])))
    table = judged({("zero_shot", 0): [0.5]})
    (row,) = beside_printed(in_percent(accuracy(table, {"q0": "g"})), printed(published("visual_rag", table=3)), papers, table).to_dict("records")
    assert row["allowed"] == round(1.96 * spread * np.sqrt(2), 1)


def test_verdicts_that_differ_widen_what_is_allowed() -> None:
    paper, groups = printed(published("visual_rag", table=3)), {f"q{i}": "g" for i in range(4)}
    sure, unsure = (judged({("zero_shot", 0): [0.5]}, queries=4, spread=spread) for spread in (0.0, 0.5))
    allowed = [held_against_paper(in_percent(accuracy(table, groups)), paper, table)["allowed"].item() for table in (sure, unsure)]
    assert allowed[1] ** 2 - allowed[0] ** 2 == pytest.approx(1.96**2 * 1e4 * 0.5**2 / 4)    # variance of a mean of four verdicts, in points


def test_printed_tables_get_the_ks_that_ours_have() -> None:
    six = printed(published("visual_rag", table=6), n=266)
    assert set(six.query("setting == 'm_gt'").apply(lambda row: (row["m"], row["k"]), axis=1)) == {(m, m) for m in range(1, 6)}
    assert set(six.query("setting == 'm_in_k'")["k"]) == {10}
    assert six.query("setting == 'zero_shot'")["k"].eq(0).all()
    assert six["n"].eq(266).all()


@given(st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0])), min_size=3, max_size=12))
@settings(max_examples=50, deadline=None)
def test_failures_lie_between_all_wrong_and_all_right_and_are_never_in_the_mean(scores: list[float | None]) -> None:
    table = pd.DataFrame({"model": "m", "setting": "s", "k": 1, "draw": 0, "query_id": [f"q{i}" for i in range(len(scores))], "score": [np.nan if s is None else s for s in scores],
                          "abstained": np.nan, "status": ["refused: no" if s is None else "ok" for s in scores]})
    row = accuracy(table, {f"q{i}": f"g{i}" for i in range(len(scores))}).query("metric == 'accuracy'").iloc[0]
    known = [s for s in scores if s is not None]
    assert row["n_failed"] == len(scores) - len(known)
    assert row["if_all_wrong"] == pytest.approx(sum(known) / len(scores))
    assert row["if_all_right"] == pytest.approx((sum(known) + len(scores) - len(known)) / len(scores))
    assert row["if_refusals_wrong"] == pytest.approx(row["if_all_wrong"])
    if known:
        assert row["value"] == pytest.approx(np.mean(known))
        assert row["if_all_wrong"] <= row["value"] <= row["if_all_right"]


def test_only_refusals_count_as_wrong_where_refusals_do() -> None:
    table = judged({("s", 1): [1.0]}, queries=4).assign(score=[1.0, 1.0, np.nan, np.nan], status=["ok", "ok", "refused: policy", "timeout: 60 s"])
    row = accuracy(table, {f"q{i}": "g" for i in range(4)}).iloc[0]
    assert (row["value"], row["if_refusals_wrong"], row["if_all_wrong"]) == (1.0, pytest.approx(2 / 3), 0.5)


def test_the_deviation_over_draws_is_the_papers() -> None:
    runs = published("visual_rag", table=13).dropna(subset="run").query("model == 'GPT-4o'")["value"]
    row = over_draws(judged({("gt_clue", 1): list(runs / 100)})).iloc[0]
    assert (100 * row["value"], 100 * row["std"]) == (pytest.approx(59.81, abs=0.005), pytest.approx(1.884, abs=0.0005))    # AVG and STD as printed in Table 13
    assert row["runs"] == 5


def test_the_best_top_k_is_each_models_own() -> None:
    table = pd.concat([judged({("zero_shot", 0): [0.1], ("top_k", 1): [0.2], ("top_k", 5): [0.4]}, model="a"),
                       judged({("zero_shot", 0): [0.1], ("top_k", 1): [0.3], ("top_k", 5): [0.2]}, model="b")])
    best = best_top_k(accuracy(table, {"q0": "g"}).query("metric == 'accuracy'")).query("setting == 'rag_best'")
    assert list(best[["model", "k"]].itertuples(index=False, name=None)) == [("a", 5), ("b", 1)]


def test_the_second_corpus_is_matched_by_scientific_name_and_has_no_labels(tree: Path, write_annotations: Callable[..., Path], tmp_path: Path) -> None:
    benchmark = load_visual_rag(write_annotations({}, {"question": "And the other?", "sn": "Aus bus"}), tree)
    folder = tmp_path / "inat24" / "07777_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"
    folder.mkdir(parents=True)
    for name in ("x.jpg", "y.jpg", "notes.txt"):
        (folder / name).write_bytes(b"")
    other = load_other_corpus(benchmark, tmp_path / "inat24", name="iNat24")
    assert [query.entity for query in other.queries.values()] == ["Branta leucopsis"]
    (query_id,) = other.queries
    assert [doc_id.split("/")[1] for doc_id in other.candidates(query_id) or ()] == ["x.jpg", "y.jpg"]
    assert other.relevant(query_id) == ()
    assert other.fingerprint != benchmark.fingerprint
    (tmp_path / "wrong" / "some").mkdir(parents=True)
    with pytest.raises(VragError, match="none of its 1 folders is a species of visual-rag, such as 'Branta leucopsis'"):
        load_other_corpus(benchmark, tmp_path / "wrong", name="x")
    with pytest.raises(VragError, match="no such folder"):
        load_other_corpus(benchmark, tmp_path / "nowhere", name="x")
