"""Audit checks of shares as whole numbers of conversations, and of the remainder when a part is
subtracted from the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import AGREES, CONTRADICTS, NOT_COMPARABLE, Tolerance, audit_rows

CONVERSATIONS = 586
"""Size of the public test set: all early-stop rates of Table 9 are whole shares of it."""
FOUND = 495
"""Size of Table 11's part of the public test set; 505 fits as well."""
OF_INDUSTRY = 587
"""Denominator of the four industry systems of Table 5."""
LEADERBOARD = ("Llama 3.2 11B RAG", "Winning team")
PARTS = {10: (8, 0.65), 11: (9, 0.85)}
"""Maps the table of a part to the table of the whole, and the part's share."""
_DIGIT = 0.05 + 1e-6
_SHARE = 0.005
Tables = Mapping[int | str, pd.DataFrame]


def possible_denominators(shares: Sequence[float], low: int, high: int) -> list[int]:
    """Returns each n from `low` to `high` for which all shares, in percent to one digit, are whole
    numbers.
    """
    given = np.array(shares)
    fit = []
    for n in range(low, high + 1):
        nearest = 100 / n * np.round(given * n / 100)
        if (np.abs(nearest - given) <= _DIGIT).all():
            fit.append(n)
    return fit


def early_stop_rates(tables: Tables) -> dict[int, pd.DataFrame]:
    """Returns the early-stop rates of Tables 9 and 11, and of Table 5's industry systems: model,
    setting, value.
    """
    found = {}
    for number in (9, 11, 5):
        table = tables[number]
        rows = table[(table["metric"] == "early_stop") & ~table["model"].isin(LEADERBOARD)]
        found[number] = rows.reset_index(drop=True)
    return found


def check_conversation_counts(tables: Tables) -> Iterable[pd.DataFrame]:
    """Checks early-stop rates as whole numbers of conversations; the paper gives no such number."""
    for (number, rows), n in zip(
        early_stop_rates(tables).items(), (CONVERSATIONS, FOUND, OF_INDUSTRY), strict=True
    ):
        nearest = 100 / n * (rows["value"] * n / 100).round()
        check = "count consistency (conversations)"
        table = audit_rows(check, number, rows, rows["value"], nearest, Tolerance(_DIGIT))
        notes = [f"{share * n / 100:.0f} of {n}" for share in nearest]
        finding = table["finding"].replace(CONTRADICTS, NOT_COMPARABLE)
        yield table.assign(finding=finding, note=notes)


def check_remainders(tables: Tables) -> Iterable[pd.DataFrame]:
    """Checks whether the rest can have any values that reconcile a part with the whole.

    reported is the value of the whole, recomputed the nearest that the part allows, whatever the
    rest; rounding of both, and of the part's share, is allowed for.
    """
    for number, (whole, share) in PARTS.items():
        key = ["setting", "model", "metric"]
        columns = [*key, "value"]
        both = tables[number][columns].merge(tables[whole][columns], on=key, suffixes=("_part", ""))
        both = both.rename(columns={"metric": "scenario"})
        lowest = np.where(both["scenario"] == "truthfulness", -100.0, 0.0)
        nearest, apart = both["value"].copy(), pd.Series(np.inf, both.index)
        for of in (share - _SHARE, share, share + _SHARE):
            low = of * both["value_part"] + (1 - of) * lowest
            high = of * both["value_part"] + (1 - of) * 100
            allowed = both["value"].clip(low, high)
            distance = (allowed - both["value"]).abs()
            nearest = nearest.where(distance >= apart, allowed)
            apart = apart.mask(distance < apart, distance)
        rows = audit_rows(
            "part not larger than whole",
            f"{whole}, {number}",
            both,
            both["value"],
            nearest,
            Tolerance(0.1 + 1e-6),
        )
        implied = (both["value"] - share * both["value_part"]) / (1 - share)
        odd = rows["finding"] != AGREES
        notes = [f"{value:.1f} of the rest" for value in implied]
        yield rows.assign(note=np.where(odd, notes, ""))
