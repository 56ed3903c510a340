"""Scores of conversations: the stop, means before and after it, slices, and what failures leave
open; against the specification's cases and a slow plain version.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import factories
import numpy as np
import pandas as pd
import pytest

from vrag_kit.analysis import apply_early_stop
from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.conversations import (
    conversation_means,
    early_stopping_rule,
)
from vrag_kit.types import Benchmark, Query

SCORES = {"R": 1.0, "M": 0.0, "W": -1.0, "?": math.nan}
BOUNDS = ["bound_low", "bound_high"]


def benchmark(lengths: Sequence[int]) -> Benchmark:
    """Conversations of so many turns."""
    queries = []
    for talk, length in enumerate(lengths):
        one = {"text": "?", "group": f"c{talk}", "conversation_id": f"c{talk}"}
        queries += [Query(query_id=f"c{talk}t{turn}", turn=turn, **one) for turn in range(length)]
    return factories.benchmark(queries)


def judged(talks: Sequence[str], setting: str = "s") -> pd.DataFrame:
    """Conversations as letters: R right, M missing, W wrong, ? no verdict, - not asked."""
    tables = []
    for talk, letters in enumerate(talks):
        names = [f"c{talk}t{turn}" for turn in range(len(letters))]
        rows = pd.DataFrame({"query_id": names, "score": list(letters)}).query("score != '-'")
        rows["score"] = rows["score"].map(SCORES)
        tables.append(rows.assign(group=f"c{talk}"))
    table = factories.judged(**pd.concat(tables).to_dict("list"), setting=setting)
    return table.assign(score_min=-1.0, score_max=1.0)


def means(talks: Sequence[str]) -> pd.DataFrame:
    found = conversation_means(judged(talks), benchmark(list(map(len, talks))))
    return found.set_index("metric")


def test_case_4_slices_are_cut_after_the_stop():
    talks, names = ["WRRWR"], "abbaa"
    labels = {f"c0t{turn}": label for turn, label in enumerate(names)}
    table = judged(talks)
    found = conversation_means(table, benchmark([5]), slices=labels).set_index("slice")
    assert found["value"].to_dict() == {"a": pytest.approx(-1 / 3), "b": 1.0}
    assert found["n_turns"].to_dict() == {"a": 3, "b": 2}
    # cut before, W W R would stop at its second turn: (−1 − 1 + 0) / 3
    assert early_stopping_rule([-1, -1, 1]) == 1
    whole = apply_early_stop(table, benchmark([5]), early_stopping_rule)
    assert whole["after_stop"].tolist() == [-1, 1, 1, -1, 1]


def slowly_stopped(letters: str) -> tuple[str, int | None]:
    """The letters after the stop, and the turn at which it fired."""
    kept, fired = "", None
    for i, letter in enumerate(letters):
        kept += letter if fired is None else "M"
        if fired is None and i >= 1 and letters[i - 1] != "R" and letter != "R":
            fired = i
    return kept, fired


def slowly(talks: Sequence[str]) -> dict[str, float]:
    every, stopped = "".join(talks), [slowly_stopped(talk) for talk in talks]
    kept = "".join(letters for letters, _ in stopped)
    scores = [(each.count("R") - each.count("W")) / len(each) for each, _ in stopped]
    fired = [(turn, len(letters)) for letters, turn in stopped if turn is not None]
    return {
        "accuracy": every.count("R") / len(every),
        "missing": every.count("M") / len(every),
        "hallucination": every.count("W") / len(every),
        "accuracy_early_stopped": kept.count("R") / len(every),
        "missing_early_stopped": kept.count("M") / len(every),
        "hallucination_early_stopped": kept.count("W") / len(every),
        "truthfulness": sum(scores) / len(scores),
        "early_stop": len(fired) / len(talks),
        "early_stop_before_last_turn": sum(turn + 1 < n for turn, n in fired) / len(talks),
        "successful_turns": kept.count("R") / len(talks),
    }


def test_forty_conversations_in_two_arms_have_the_means_of_the_slow_version():
    draw = np.random.default_rng(0)
    lengths = draw.integers(1, 7, 40)
    shares = {"own": (0.6, 0.2, 0.2), "none": (0.3, 0.4, 0.3)}
    arms = {
        name: ["".join(draw.choice(list("RMW"), p=p, size=length)) for length in lengths]
        for name, p in shares.items()
    }
    both = pd.concat([judged(talks, name) for name, talks in arms.items()])
    shuffled = both.sample(frac=1, random_state=0)
    table = conversation_means(shuffled, benchmark(lengths), early_stopping_rule)
    for name, talks in arms.items():
        part = table[table["setting"] == name].set_index("metric")["value"]
        assert part.to_dict() == pytest.approx(slowly(talks))


def test_a_turn_without_a_verdict_leaves_its_conversation_unscored():
    found = means(["RR?", "RW", "W?RR"])
    row = found.loc["truthfulness"]
    assert (row["value"], row["n"], row["n_turns"], row["n_failed"]) == (0, 1, 2, 2)
    # all wrong: (1/3 + 0 − 2/4) / 3; all right: (3/3 + 0 + (−1 + 3)/4) / 3
    assert row["bound_low"] == pytest.approx((1 / 3 + 0 - 0.5) / 3)
    assert row["bound_high"] == pytest.approx((1 + 0 + 0.5) / 3)
    shares = found.loc["accuracy"]
    assert (shares["value"], shares["n_turns"]) == (0.5, 2)
    assert tuple(shares[BOUNDS]) == pytest.approx((5 / 9, 7 / 9))
    assert tuple(found.loc["early_stop", BOUNDS]) == pytest.approx((1 / 3, 0))


def test_truthfulness_is_the_same_whether_turns_after_a_stop_were_asked_or_not():
    talks = ["RWWRR", "MMW?", "?WR", "R?MM", "RRR", "WRW", "MW", "?"]
    saved = ["RWW--", "MM--", "?WR", "R?MM", "RRR", "WRW", "MW", "?"]
    after = ["truthfulness", "early_stop", "early_stop_before_last_turn", "successful_turns"]
    numbers = ["value", "n", "n_turns", "n_failed"]
    pd.testing.assert_frame_equal(
        means(talks).loc[after, numbers], means(saved).loc[after, numbers]
    )


@pytest.mark.parametrize(
    ("letters", "lengths", "columns", "said"),
    [
        ("RR-", [3], {}, r"turn 2 \('c0t2'\)"),
        ("RR", [2], {"score": [1.0, 0.5]}, r"row 1: found the score 0\.5"),
        ("RR", [2], {"score_min": 0.0}, "does not tell wrong from missing"),
    ],
)
def test_answers_that_cannot_be_scored_are_refused(letters, lengths, columns, said):
    with pytest.raises(VragError, match=said):
        conversation_means(judged([letters]).assign(**columns), benchmark(lengths))


def test_turns_that_do_not_fit_the_benchmark_are_refused():
    twice = pd.concat([judged(["RR"]), judged(["RR"]).tail(1)])
    with pytest.raises(VragError, match=r"two answers to 'c0t1' .*model"):
        conversation_means(twice, benchmark([2]))
    with pytest.raises(KeyError, match="c0t1"):
        conversation_means(judged(["RR"]), benchmark([2]), slices={"c0t0": "a"})
