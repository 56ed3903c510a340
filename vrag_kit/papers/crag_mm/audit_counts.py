"""The paper's shares as whole numbers of conversations, and what is left of the whole
beside a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.papers.audit_rows import AGREES, CONTRADICTS, NOT_COMPARABLE, Allowed, rows_of

CONVERSATIONS = 586
"""Of the public test: of this number all early stops of Table 9 are whole shares."""
FOUND = 495
"""Of Table 11's part of them; 505 fits as well."""
OF_INDUSTRY = 587
"""Of the four industry systems of Table 5."""
LEADERBOARD = ("Llama 3.2 11B RAG", "Winning team")
PARTS = {10: (8, 0.65), 11: (9, 0.85)}
"""A table of a part → the table of all, and the share of questions or conversations."""
_DIGIT = 0.05 + 1e-6
_SHARE = 0.005
Tables = Mapping[int | str, pd.DataFrame]


def denominators(shares: Sequence[float], low: int, high: int) -> list[int]:
    """The n from `low` to `high` of which all shares, in percent to one digit, are whole
    numbers.
    """
    given = np.array(shares)
    fit = []
    for n in range(low, high + 1):
        nearest = 100 / n * np.round(given * n / 100)
        if (np.abs(nearest - given) <= _DIGIT).all():
            fit.append(n)
    return fit


def early_stops(tables: Tables) -> dict[int, pd.DataFrame]:
    """The early stops of Tables 9 and 11, and of Table 5's industry systems: model,
    setting, value.
    """
    found = {}
    for number in (9, 11, 5):
        table = tables[number].rename(columns={"task": "setting", "system": "model"})
        rows = table[(table["metric"] == "early_stop") & ~table["model"].isin(LEADERBOARD)]
        found[number] = rows.reset_index(drop=True)
    return found


def conversation_counts(tables: Tables) -> Iterable[pd.DataFrame]:
    """Early stops as whole numbers of conversations; no number of them is printed."""
    for (number, rows), n in zip(
        early_stops(tables).items(), (CONVERSATIONS, FOUND, OF_INDUSTRY), strict=True
    ):
        nearest = 100 / n * (rows["value"] * n / 100).round()
        check = "a whole number of conversations"
        table = rows_of(check, number, rows, rows["value"], nearest, Allowed(_DIGIT))
        notes = [f"{share * n / 100:.0f} of {n}" for share in nearest]
        finding = table["finding"].replace(CONTRADICTS, NOT_COMPARABLE)
        yield table.assign(finding=finding, note=notes)


def remainders(tables: Tables) -> Iterable[pd.DataFrame]:
    """Values of all beside those of a part: whether the rest can have any.

    printed is the value of all, recomputed the nearest that the part allows, whatever
    the rest; rounding of both, and of the part's share, is allowed for.
    """
    for number, (whole, share) in PARTS.items():
        key = ["task", "model", "metric"]
        columns = [*key, "value"]
        both = tables[number][columns].merge(tables[whole][columns], on=key, suffixes=("_part", ""))
        both = both.rename(columns={"task": "setting", "metric": "scenario"})
        lowest = np.where(both["scenario"] == "truthfulness", -100.0, 0.0)
        nearest, apart = both["value"].copy(), pd.Series(np.inf, both.index)
        for of in (share - _SHARE, share, share + _SHARE):
            low = of * both["value_part"] + (1 - of) * lowest
            high = of * both["value_part"] + (1 - of) * 100
            allowed = both["value"].clip(low, high)
            distance = (allowed - both["value"]).abs()
            nearest = nearest.where(distance >= apart, allowed)
            apart = apart.mask(distance < apart, distance)
        rows = rows_of(
            "a whole and its part",
            f"{whole}, {number}",
            both,
            both["value"],
            nearest,
            Allowed(0.1 + 1e-6),
        )
        implied = (both["value"] - share * both["value_part"]) / (1 - share)
        odd = rows["finding"] != AGREES
        notes = [f"{value:.1f} of the rest" for value in implied]
        yield rows.assign(note=np.where(odd, notes, ""))
