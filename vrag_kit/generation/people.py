"""People who answer questions with options: their letters in a file, and in the table
that models' answers are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from string import ascii_uppercase

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.talking import COLUMNS as ANSWER_COLUMNS
from vrag_kit.tables import read_rows, write_rows
from vrag_kit.types import Benchmark, Context, Query, Status

COLUMNS = ["query_id", "setting", "letter", "option", "seconds", "person"]
_ADVICE = "Write some with `choose_options`, or name other files."


def read_choices(path: Path | str) -> pd.DataFrame:
    """What one or several people chose, out of a CSV file: query_id, setting, letter,
    option (the words of that letter), seconds (NaN where nobody took the time), person.

    Raises `VragError` naming the line for a missing column, a row that is too long or
    too short, no letter, odd seconds, an empty name, and a question that one person
    answered twice in a setting.
    """
    rows: list[tuple[object, ...]] = []
    lines: dict[tuple[str, ...], int] = {}
    for number, row in read_rows(Path(path), COLUMNS, "choices", _ADVICE):
        where = f"{path} line {number}"
        if len(row["letter"]) != 1 or row["letter"] not in ascii_uppercase:
            raise VragError(f"{where}: found the letter {row['letter']!r}, expected A, B, C, ….")
        for name in ("query_id", "setting", "person"):
            if not row[name]:
                raise VragError(f"{where}: the {name} is empty; expected a name.")
        key = (row["query_id"], row["setting"], row["person"])
        if key in lines:
            raise VragError(
                f"{where}: {key[2]!r} answered {key[0]!r} in {key[1]!r} already, in line"
                f" {lines[key]}; keep one of them."
            )
        lines[key] = number
        words = [row[name] for name in COLUMNS if name not in ("seconds", "person")]
        rows.append((*words, _seconds(row, where), row["person"]))
    table = pd.DataFrame(rows, columns=COLUMNS, dtype=object)
    return table.astype({"seconds": float})


def write_choices(path: Path | str, choices: pd.DataFrame) -> None:
    """Write what people chose as `read_choices` reads it, replacing the file only once
    the new one is complete. Raises `OSError` when it cannot be written.
    """
    seconds = choices["seconds"].map(lambda each: "" if pd.isna(each) else f"{each:.1f}")
    write_rows(
        Path(path), COLUMNS, choices.assign(seconds=seconds)[COLUMNS].itertuples(index=False)
    )


def option_of(query: Query, letter: str) -> str | None:
    """The words of an option; None for a letter that a question does not have."""
    place = ascii_uppercase.index(letter)
    return query.choices[place] if place < len(query.choices) else None


def people_answers(
    benchmark: Benchmark, contexts: Sequence[Context], files: Iterable[Path | str]
) -> pd.DataFrame:
    """What people chose in files, as the table of answers that `ask_models` gives, with
    people in the column model and their seconds beside: one row for each of `contexts`
    that a person answered.

    A choice whose option stands elsewhere in the benchmark's question, or that is of no
    context, is left out; how many are is printed. Raises `VragError` as `read_choices`,
    and when two files hold choices of one person.
    """
    tables = [read_choices(path) for path in files]
    chosen = pd.concat(tables) if tables else pd.DataFrame(columns=COLUMNS)
    key = ["query_id", "setting", "person"]
    if not (twice := chosen[chosen.duplicated(key)]).empty:
        raise VragError(
            f"two files hold choices of {twice['person'].iloc[0]!r}; keep a file for each person."
        )
    asked = {(context.query_id, context.setting): context for context in contexts}
    rows = []
    for choice in chosen.to_dict("records"):
        context = asked.get((choice["query_id"], choice["setting"]))
        if context is None:
            continue
        query = benchmark.queries[context.query_id]
        if option_of(query, choice["letter"]) == choice["option"]:
            rows.append(_row(benchmark, context, choice["person"], choice["letter"]))
            rows[-1]["seconds"] = choice["seconds"]
    print(
        f"people: {chosen['person'].nunique()} chose {len(chosen):,} options; {len(rows):,} of them"
        f" are to be compared, {len(chosen) - len(rows):,} belong to other questions",
        flush=True,
    )
    return pd.DataFrame(rows, columns=[*ANSWER_COLUMNS, "seconds"]).astype({"m": "Int64"})


def _row(benchmark: Benchmark, context: Context, person: str, letter: str) -> dict[str, object]:
    return {
        "benchmark": benchmark.name,
        "model": person,
        "setting": context.setting,
        "k": context.k,
        "m": context.m,
        "draw": context.draw,
        "sample": 0,
        "query_id": context.query_id,
        "group": benchmark.queries[context.query_id].group,
        "doc_ids": context.doc_ids,
        "template": "",
        "answer": letter,
        "status": Status.OK.value,
        "detail": "",
        "answer_id": "",
    }


def _seconds(row: dict[str, str], where: str) -> float:
    if not row["seconds"]:
        return float("nan")
    try:
        seconds = float(row["seconds"])
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise VragError(
            f"{where}: found {row['seconds']!r} seconds, expected a number, or nothing."
        )
    return seconds
