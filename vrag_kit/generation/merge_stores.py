"""Merge answer stores into one, which keeps each answer once and loses none.

Nodes that cannot share a disk with file locks write to a store each. The stores are merged
afterwards, in any order, and again when they have grown.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.store import AnswerStore
from vrag_kit.generation.store_layout import ANSWER_COLUMNS
from vrag_kit.types import Json, Status


def _worth(table: str) -> str:
    """SQL that ranks a good answer before an empty or truncated one, and both before a failure."""
    answered = tuple(str(status) for status in Status if status.is_answer)
    return f"({table}.status IN {answered} + ({table}.status = 'ok'))"


def _rank(table: str) -> str:
    """SQL that orders rows of one answer: the first answer is the best, and the last failure."""
    sign = f"iif({_worth(table)}, -1, 1)"
    return f"({_worth(table)}, {sign} * {table}.stored, ifnull({table}.raw, ''))"


_BOTH = "other.answers AS new LEFT JOIN main.answers AS old USING (answer_id)"
_IS_BETTER = f"{_rank('new')} > {_rank('old')}"
_IS_CONFLICT = (
    f"{_worth('new')} > 0 AND {_worth('new')} = {_worth('old')}"
    " AND (new.status, new.raw) IS NOT (old.status, old.raw)"
)
_COUNTS = f"""
SELECT COUNT(*) FILTER (WHERE old.status IS NULL) AS new,
    COUNT(*) FILTER (WHERE {_worth("new")} <= {_worth("old")}) AS already_there,
    COUNT(*) FILTER (WHERE {_worth("new")} > {_worth("old")}) AS replaced,
    COUNT(*) FILTER (WHERE {_IS_CONFLICT}) AS conflicts,
    (SELECT COUNT(*) FROM other.claims WHERE lease_until >= :now) AS pending
FROM {_BOTH}
"""
_CONFLICTS = f"""
SELECT answer_id, new.model, iif({_IS_BETTER}, new.raw, old.raw) AS kept,
    iif({_IS_BETTER}, old.raw, new.raw) AS dropped, :store AS store
FROM {_BOTH} WHERE {_IS_CONFLICT} ORDER BY answer_id
"""
_MERGE = (
    f"INSERT OR REPLACE INTO main.answers ({ANSWER_COLUMNS})"
    f" SELECT {', '.join(f'new.{name}' for name in ANSWER_COLUMNS.split(', '))}"
    f" FROM {_BOTH} WHERE old.status IS NULL OR {_IS_BETTER}",
    "INSERT OR IGNORE INTO main.prompts SELECT * FROM other.prompts"
    " WHERE prompt_id IN (SELECT prompt_id FROM main.answers)",
    "INSERT OR IGNORE INTO main.pictures SELECT * FROM other.pictures",
    # the spending of one opened store only grows: the larger sum is the later one
    "INSERT INTO main.spending SELECT * FROM other.spending WHERE true"
    " ON CONFLICT (writer, model) DO UPDATE SET dollars = excluded.dollars"
    " WHERE excluded.dollars > dollars",
)


def merge_stores(
    stores: Sequence[Path | str], *, to: Path | str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Merge `stores` into the store at `to`, which is created if it does not exist.

    Merges answers and failures with all their data, image hashes, and spending. Returns two tables.
    One has a row for each store, with numbers of answers and failures: new, already_there, replaced
    (a failure by an answer), conflicts; and pending, the questions that are being asked, to be
    merged later. The other has a row for each pair of answers that differ: answer_id, model, kept
    and dropped (the texts), and store (whose merge found them).

    An answer replaces a failure, and a later failure an earlier one; of different answers the one
    written first is kept. Claims are not merged. Each store is merged as a whole or not at all;
    repeating it changes nothing. The stores themselves are not changed. The target may be among
    them, and is skipped.

    Raises `VragError`, before anything is merged, for a file that is not a store, is damaged or has
    another layout.
    """
    target = Path(to)
    paths = [path for path in map(Path, stores) if path.resolve() != target.resolve()]
    for path in paths:
        if not path.is_file() or not path.stat().st_size:
            raise VragError(f"{path}: found no answer store; expected one, as answers.sqlite.")
        AnswerStore(path).close()
    with AnswerStore(target) as store:
        merged = [_merge(path, store) for path in paths]
    conflicts = [pd.DataFrame(), *(found for _, found in merged)]
    return pd.DataFrame([counts for counts, _ in merged]), pd.concat(conflicts, ignore_index=True)


def _merge(path: Path, target: AnswerStore) -> tuple[Json, pd.DataFrame]:
    """Merge a store; return its row of the report, and its conflicts."""
    values: Json = {"store": str(path), "now": time.time()}
    with target.reading() as db:
        db.execute("ATTACH ? AS other", (str(path),))
        try:
            with target.writing():
                counts = pd.read_sql_query(_COUNTS, db, params=values)
                conflicts = pd.read_sql_query(_CONFLICTS, db, params=values)
                for statement in _MERGE:
                    db.execute(statement)
        finally:
            db.execute("DETACH other")
    return {"store": str(path), **counts.iloc[0]}, conflicts
