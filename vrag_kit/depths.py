"""Numbers of documents that a benchmark can give: what is larger is cut, and said."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_kit.forecast import note


def cut_to(ks: Sequence[int], most: int, there: str) -> list[int]:
    """`ks` in their order, each at most `most` and once; where that changes them, a line
    is printed that says so, or noted where there is only a forecast.

    `there` says in words what there is, such as "query 'q1' has 12 candidates".
    """
    fitting = list(dict.fromkeys(min(k, most) for k in ks))
    larger = list(dict.fromkeys(k for k in ks if k > most))
    if larger:
        note(f"k = {', '.join(map(str, larger))} is cut to {most}: {there}")
    return fitting
