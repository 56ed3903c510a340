"""Human answers to multiple-choice questions: choice files, and tables like those of models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from string import ascii_uppercase

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.conversation import ANSWER_COLUMNS
from vrag_kit.tables import read_csv_rows, write_csv_rows
from vrag_kit.types import Benchmark, Context, Query, Status

CHOICE_COLUMNS = ["query_id", "setting", "option", "option_text", "seconds", "participant"]
_ADVICE = "Write some with `multiple_choice_panel`, or name other files."


def read_choices(path: Path | str) -> pd.DataFrame:
    """Read the options that one or several participants chose from a CSV file.

    The columns are query_id, setting, option (a letter), option_text, seconds (NaN if not
    measured), participant. Raises `VragError` naming the line for a missing column, a row that is
    too long or too short, an option that is no letter, invalid seconds, an empty name, and a
    question that one participant answered twice in a setting.
    """
    rows: list[tuple[object, ...]] = []
    lines: dict[tuple[str, ...], int] = {}
    for number, row in read_csv_rows(Path(path), CHOICE_COLUMNS, "choices", _ADVICE):
        where = f"{path} line {number}"
        if len(row["option"]) != 1 or row["option"] not in ascii_uppercase:
            raise VragError(f"{where}: found the letter {row['option']!r}, expected A, B, C, ….")
        for name in ("query_id", "setting", "participant"):
            if not row[name]:
                raise VragError(f"{where}: the {name} is empty; expected a name.")
        key = (row["query_id"], row["setting"], row["participant"])
        if key in lines:
            raise VragError(
                f"{where}: {key[2]!r} answered {key[0]!r} in {key[1]!r} already, in line"
                f" {lines[key]}; keep one of them."
            )
        lines[key] = number
        words = [row[name] for name in CHOICE_COLUMNS if name not in ("seconds", "participant")]
        rows.append((*words, _seconds(row, where), row["participant"]))
    table = pd.DataFrame(rows, columns=CHOICE_COLUMNS, dtype=object)
    return table.astype({"seconds": float})


def write_choices(path: Path | str, choices: pd.DataFrame) -> None:
    """Write chosen options in the format of `read_choices`, replacing the file atomically. Raises
    `OSError` when it cannot be written.
    """
    seconds = choices["seconds"].map(lambda each: "" if pd.isna(each) else f"{each:.1f}")
    write_csv_rows(
        Path(path),
        CHOICE_COLUMNS,
        choices.assign(seconds=seconds)[CHOICE_COLUMNS].itertuples(index=False),
    )


def option_text(query: Query, letter: str) -> str | None:
    """Return the text of an option; None for a letter that the question does not have."""
    place = ascii_uppercase.index(letter)
    return query.choices[place] if place < len(query.choices) else None


def load_human_answers(
    benchmark: Benchmark, contexts: Sequence[Context], files: Iterable[Path | str]
) -> pd.DataFrame:
    """Load participants' choices as a table of answers like that of `ask_models`.

    The column model holds the participant, and seconds is added. There is one row for each of
    `contexts` that a participant answered. A choice whose option has another position in the
    benchmark's question, or that is of no context, is left out; how many are is printed. Raises
    `VragError` as `read_choices`, and when two files hold choices of one participant.
    """
    tables = [read_choices(path) for path in files]
    chosen = pd.concat(tables) if tables else pd.DataFrame(columns=CHOICE_COLUMNS)
    key = ["query_id", "setting", "participant"]
    if not (twice := chosen[chosen.duplicated(key)]).empty:
        raise VragError(
            f"two files hold choices of {twice['participant'].iloc[0]!r}; keep a file for each"
            " participant."
        )
    asked = {(context.query_id, context.setting): context for context in contexts}
    rows = []
    for choice in chosen.to_dict("records"):
        context = asked.get((choice["query_id"], choice["setting"]))
        if context is None:
            continue
        query = benchmark.queries[context.query_id]
        if option_text(query, choice["option"]) == choice["option_text"]:
            rows.append(_row(benchmark, context, choice["participant"], choice["option"]))
            rows[-1]["seconds"] = choice["seconds"]
    named = chosen["participant"]
    print(
        f"people: {named.nunique()} chose {len(chosen):,} options; {len(rows):,} of them"
        f" are to be compared, {len(chosen) - len(rows):,} belong to other questions",
        flush=True,
    )
    return pd.DataFrame(rows, columns=[*ANSWER_COLUMNS, "seconds"]).astype({"m": "Int64"})


def _row(
    benchmark: Benchmark, context: Context, participant: str, letter: str
) -> dict[str, object]:
    return {
        "benchmark": benchmark.name,
        "model": participant,
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
