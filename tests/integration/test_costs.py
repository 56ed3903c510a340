"""What params/README.md says that the papers' main experiments take is what the forecast of their
own parameter files says, and as many calls as the papers' designs have.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from readme_pages import README
from timing.costs import PAPERS, costs, line

CALLS = {
    # without a picture, 5 clues, 5 others, the top 7, and 5 draws of one in 6 numbers
    "Visual-RAG": {"answers": 374 * (1 + 5 + 5 + 7 + 5 * 6)},
    # no examples, ground truth, retrieved ones, another question's
    "MRAG-Bench": {"answers": 1_353 * 4},
    # three arms and two, each with two pictures; questions said anew in the last arm
    "CRAG-MM": {"answers": 2 * (3 * 1_938 + 2 * 586 * 4.9)},
    "MRAG-Suite": {"answers": 30_677, "closed book": 30_677},
}


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_the_readmes_costs_are_those_of_the_papers_own_files(paper: str, tmp_path: Path) -> None:
    found = costs(paper, tmp_path)
    for what, calls in CALLS[paper].items():
        told = [each.calls for name, each in found.items() if name.startswith(what)]
        assert told == [pytest.approx(calls)] * len(told)
        assert told
    for name, forecast in found.items():
        told = cells(line(paper, name, forecast))
        (printed,) = (each for each in map(cells, README.splitlines()) if each[:1] == told[:1])
        # a stand-in's words have a number in them, which may have a digit more
        assert numbers(printed) == pytest.approx(numbers(told), rel=0.01, abs=0.11)


def cells(row: str) -> list[str]:
    return [each.strip() for each in row.strip("|").split("|")]


def numbers(row: list[str]) -> list[float]:
    return [float(each.replace(",", "")) for each in row[1:]]
