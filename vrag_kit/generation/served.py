"""Model names that endpoints report, which may be of another model or version."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

SERVED = "served"
"""Field of an answer: the model name that the endpoint reports."""


def served_name_warning(asked: str, served: Sequence[str], what: str) -> str:
    """Return a warning if answers (`what`) came from other models than `asked`, or several versions
    of it; "" if all came from one.

    A version is the name followed by a date or number ("gpt-4o-2024-08-06"), or a revision
    ("@main", ":latest"); "gpt-4o-mini" is another model than "gpt-4o".
    """
    counts = Counter(served)
    version = re.compile(rf"{re.escape(asked)}((-\d+)+|[@:].*)?")
    others = Counter({name: counts[name] for name in counts if not version.fullmatch(name)})
    if others:
        came = f"{others.total():,} of {len(served):,} {what} came from {quote_with_counts(others)}"
        return f"{came}, not {asked!r}"
    return f"{what} came from {quote_with_counts(counts)}" if len(counts) > 1 else ""


def quote_with_counts(names: Counter[str]) -> str:
    """Return names in quotes; if there are several, each with its count."""
    if len(names) == 1:
        return repr(next(iter(names)))
    return ", ".join(f"{name!r} ({count:,})" for name, count in names.most_common())
