"""`vrag compare`: comparison of two runs, or two arms of one, as an offline page and tables."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import pandas as pd

from vrag_kit.analysis import (
    config_diff,
    flips,
    load_answers,
    paired_answers,
    paired_tests,
    paired_tests_table,
    to_percent,
)
from vrag_kit.analysis.run_comparison import judges_differ, side_name
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.plotting.save import order_columns, plain_cells
from vrag_kit.plotting.save_table import to_latex
from vrag_kit.widgets.answers import flip_cards
from vrag_kit.workspace import display_path, portable_path

DIRECTIONS: dict[Hashable, str] = {"n_improved": "higher in B", "n_worsened": "higher in A"}
"""Titles of the two directions on the page."""
_LONGEST = 100
"""Characters of a folder's name."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The tables and notes of a comparison."""

    table: pd.DataFrame
    """The differences, as on the page."""
    differs: pd.DataFrame
    """The configuration that differs between the sides (`config_diff`), in full."""
    notes: list[str]
    """Counts of what was compared, and who scored it; one sentence each."""


def comparison_folder(
    a: Path, b: Path, choose_a: Sequence[str], choose_b: Sequence[str], only: str
) -> Path:
    """Return a folder below runs/compare whose name identifies a comparison:
    "figures_model-mine_vs_model-yours".
    """
    other = [*([display_path(b)] if b != a else []), *choose_b]
    words = [display_path(a), *choose_a, *(["vs", *other] if other else []), only]
    name = "_".join(re.sub(r"[^\w.]+", "-", word).strip("-.") for word in words if word)
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{hashlib.sha256(repr(words).encode()).hexdigest()[:8]}"
    return Path("runs/compare") / name


def compare_runs(
    a: Path,
    b: Path,
    to: Path,
    *,
    choose_a: Sequence[str] = (),
    choose_b: Sequence[str] = (),
    only: str = "",
    most: int = 100,
) -> RunComparison:
    """Compare the answers saved in `a` and `b`, write the results into the folder `to`, and return
    the tables of the page. `choose_a` and `choose_b` are selections "column=value"; `only` selects
    the experiments whose name contains it.

    Files: compare.html, the differences as compare.csv and compare.tex, what_differs.csv, and
    flips.csv with every answer whose score differs, without absolute paths. The page shows the
    first `most` flips of each direction and stratum with their images. Raises `VragError` as
    `load_answers` and `paired_answers` do.
    """
    sides = load_answers(a, only=only), load_answers(b, only=only)
    columns_a, columns_b = _choice(choose_a), _choice(choose_b)
    names = ("/".join(a.absolute().parts[-2:]), "/".join(b.absolute().parts[-2:]))
    pairs = paired_answers(*sides, choose_a=columns_a, choose_b=columns_b, names=names)
    differences, flipped = to_percent(paired_tests(pairs)), flips(pairs)
    found = RunComparison(
        table=paired_tests_table(differences, pairs),
        differs=config_diff(*sides, choose_a=columns_a, choose_b=columns_b),
        notes=_notes(pairs, flipped),
    )
    stores = {name: flipped[name].map(portable_path) for name in ("store_a", "store_b")}
    files = {
        "compare.csv": order_columns(differences),
        "what_differs.csv": found.differs,
        "flips.csv": plain_cells(flipped.assign(**stores)),
    }
    for name, table in files.items():
        write_file(to / name, table.to_csv(index=False, lineterminator="\n"))
    write_file(to / "compare.tex", to_latex(found.table))
    write_file(to / "compare.html", _page(found, pairs, flipped, most))
    return found


def _choice(words: Sequence[str]) -> dict[str, str]:
    """Column → value, of "column=value"."""
    for each in words:
        if "=" not in each:
            raise VragError(f"compare: found {each!r}, expected column=value, as in model=mine.")
    return dict(each.split("=", 1) for each in words)


def _notes(pairs: pd.DataFrame, flipped: pd.DataFrame) -> list[str]:
    same = int((pairs["answer_a"] == pairs["answer_b"]).sum())
    questions = pairs["query_id"].nunique()
    notes = [
        f"{len(pairs):,} pairs of answers to {questions:,} questions; {same:,} have the same text."
    ]
    in_a, in_b = pairs.attrs["unmatched"]
    if in_a or in_b:
        notes.append(f"Not compared: {in_a:,} answers only in A, {in_b:,} only in B.")
    names = pairs[["judge_a", "judge_b"]].drop_duplicates()
    if judges_differ(pairs).any():
        listed = "; ".join(names["judge_a"] + " / " + names["judge_b"])
        notes.append(
            f"Scored by different judges ({listed}): where the verdict is “different judges”, a row"
            " compares judges, not answers. To compare answers, run one side again with the other's"
            " `judge`: its answers are stored."
        )
    else:
        notes.append(f"Scored by {', '.join(filter(None, names['judge_a']))}, A and B alike.")
        if flipped.empty:
            notes.append("No score differs.")
    return notes


def _page(found: RunComparison, pairs: pd.DataFrame, flipped: pd.DataFrame, most: int) -> str:
    parts = []
    for (direction, stratum), part in flipped.groupby(["direction", "stratum"], sort=False):
        cards = flip_cards(part.head(most))
        title = DIRECTIONS[direction] + (f" ({stratum})" if stratum else "")
        questions = part["query_id"].nunique()
        parts.append({"title": title, "count": len(part), "questions": questions, "cards": cards})
    a, b = (side_name(side, pairs[side.lower()].iloc[0]) for side in "AB")
    verdict = found.table.columns[-1]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    return environment.get_template("compare.html").render(
        a=a,
        b=b,
        notes=found.notes,
        parts=parts,
        table=found.table[[verdict, *found.table.columns.drop(verdict)]],
        texts=1 + list(found.table).index(a),
        differs=found.differs.to_numpy().tolist(),
        by_interval=found.table["p"].str.endswith("(t)").any(),
    )
