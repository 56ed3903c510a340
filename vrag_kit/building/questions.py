"""Candidate questions in a CSV file that a person edits: rewrites, drops or adds
(the paper's human filtering and rewriting, appendix C).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.visual_rag import make_query_id
from vrag_kit.building.folders import SpeciesFolder, skipped_files
from vrag_kit.building.template_writer import NAME as TEMPLATE
from vrag_kit.building.writing import CANDIDATE_COLUMNS
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.tables import read_csv_rows, write_csv_rows
from vrag_kit.workspace import display_path

NEEDED = ("species", "question", "feature", "writer")
"""Required columns of a hand-written file.
The other columns default to empty.
"""


def load_or_write_questions(
    path: Path | str, make: Callable[[], pd.DataFrame], folders: Sequence[SpeciesFolder]
) -> pd.DataFrame:
    """Return the candidate questions in the file at `path`.
    If it is missing, the questions that `make` returns are written there first.

    An edited file is never overwritten. Only a species without a question in it, as after a failed
    writer, is written again. Prints what was done. Raises `VragError` as `read_questions` does,
    when no question is left, and when the file cannot be written.
    """
    path, made = Path(path), not Path(path).exists()
    questions = None if made else read_questions(path, folders)
    empty = (
        set()
        if questions is None
        else set(questions["species"]) - set(questions.loc[questions["question"] != "", "species"])
    )
    if questions is None or empty:
        fresh = make()
        written = (
            fresh
            if questions is None
            else pd.concat(
                [questions[~questions["species"].isin(empty)], fresh[fresh["species"].isin(empty)]],
                ignore_index=True,
            )
        )
        try:
            save_questions(path, written)
        except OSError as error:
            raise VragError(
                f"{path}: the questions cannot be written ({error.strerror}). Choose another"
                " folder; what a model wrote is kept in its store."
            ) from error
        questions = read_questions(path, folders)
    good, writers = (
        int((questions["dropped"] == "").sum()),
        ", ".join(dict.fromkeys(questions["writer"])),
    )
    if not good:
        raise VragError(_none_goes_on(path, questions, made=made))
    logger.info(
        f"{good:,} of {len(questions):,} questions (by {writers}) "
        + (
            f"written to {display_path(path)}; edit it, then run this again"
            if made
            else f"read from {display_path(path)}; delete it to have them written anew"
        ),
    )
    return questions


def _none_goes_on(path: Path, questions: pd.DataFrame, *, made: bool) -> str:
    template = questions["writer"].eq(TEMPLATE) & questions["question"].eq("")
    if len(questions) and template.all():
        names = list(dict.fromkeys(questions["species"]))
        some = ", ".join([*names[:3], "…"] if len(names) > 3 else names)
        return (
            f"{path}: holds no question, as the template writer knows organisms only, not {some}."
            f" Write the file yourself (columns {', '.join(NEEDED)}), or name a model as `writer`."
        )
    said = f"none of its {len(questions):,} questions goes on"
    if made:
        said = f"there was no such file, and none of {len(questions):,} that were written goes on"
    if len(questions):
        first = questions.iloc[0]
        said += f", such as one about {first['species']} ({first['dropped']})"
    return f"{path}: {said}. Write your own there, as CSV with the columns {', '.join(NEEDED)}."


def save_questions(path: Path | str, candidates: pd.DataFrame) -> None:
    """Write candidate questions in the format of `read_questions`; raises `OSError` when it fails.
    An existing file is replaced only once the new one is complete.
    """
    write_csv_rows(
        Path(path), CANDIDATE_COLUMNS, candidates[CANDIDATE_COLUMNS].itertuples(index=False)
    )


def read_questions(path: Path | str, folders: Sequence[SpeciesFolder]) -> pd.DataFrame:
    """Read the candidate questions in a CSV file that a person may have edited.
    It needs the columns `NEEDED`; the others of `write_questions` are optional, in any order.
    Commas or semicolons separate them.

    Each question_id is computed from species and question; it may be empty, and follows edits.
    Folder and common name are those of the species, which may be given by its folder's name. Raises
    `VragError` naming the line for a missing or unknown column, a row that is too long or too
    short, a species without a folder, and a row without a writer; of rows that are not dropped,
    also for one without question or feature, and for a duplicate question. Also raises it for a
    file that is missing or not UTF-8.
    """
    known = {folder.name: folder for folder in folders}
    known |= {folder.scientific: folder for folder in folders}
    lines: dict[str, int] = {}
    rows = []
    for number, row in read_csv_rows(
        Path(path),
        NEEDED,
        "questions",
        "Have them written by `load_or_write_questions`, or give the path of another file.",
        optional=[name for name in CANDIDATE_COLUMNS if name not in NEEDED],
    ):
        where = f"{path} line {number}"
        checked = _checked({name: value.strip() for name, value in row.items()}, known, where)
        if (
            not checked["dropped"]
            and (first := lines.setdefault(checked["question_id"], number)) != number
        ):
            raise VragError(
                f"{where}: {checked['question']!r} stands in line {first} already; keep one of"
                " them, or say in `dropped` why not to go on with the other."
            )
        rows.append(checked)
    return pd.DataFrame(rows, columns=CANDIDATE_COLUMNS, dtype=object)


def _checked(row: dict[str, str], known: dict[str, SpeciesFolder], where: str) -> dict[str, str]:
    """The row with question_id, folder and common name filled in."""
    folder = known.get(row["species"])
    if folder is None:
        if words := _without_pictures(row["species"], known):
            raise VragError(f"{where}: found the species {row['species']!r}, but {words}.")
        names = dict.fromkeys(folder.scientific for folder in known.values())
        near = get_close_matches(row["species"], names, 3) or list(names)[:3]
        raise VragError(
            f"{where}: found the species {row['species']!r}, which has no folder; expected one that"
            f" has, such as {', '.join(map(repr, near))}."
        )
    if not row["writer"]:
        raise VragError(
            f'{where}: the writer is empty; expected who wrote the question: a model, "template" or'
            " your name."
        )
    for name in ("question", "feature"):
        if not row[name] and not row["dropped"]:
            raise VragError(
                f"{where}: the {name} is empty; fill it in, or say in `dropped` why not to go on"
                " with this row."
            )
    question_id = make_query_id(folder.scientific, row["question"]) if row["question"] else ""
    of_folder = {"species": folder.scientific, "folder": folder.name, "common": folder.common}
    return {**row, **of_folder, "question_id": question_id}


def _without_pictures(species: str, known: dict[str, SpeciesFolder]) -> str:
    """What is wrong with the folder of a species that is there without a picture; ""
    where there is none.
    """
    root = next(iter(known.values())).root
    for name in (species, species.replace(" ", "_")):
        if name and (root / name).is_dir() and (words := skipped_files(root / name)):
            return f"{words}: convert them"
    return ""
