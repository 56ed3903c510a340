"""`vrag compare`: comparison of two runs, or two arms of one, as an offline page and tables."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from vrag_kit.analysis import (
    config_diff,
    flips,
    load_answers,
    paired_answers,
    paired_tests,
    paired_tests_table,
    to_percent,
)
from vrag_kit.analysis.run_comparison import OTHERWISE, judges_differ, side_name, unmatched_counts
from vrag_kit.analysis.strata import NO_STRATUM
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.plotting.latex import to_latex
from vrag_kit.plotting.save import order_columns, plain_cells
from vrag_kit.widgets.disagreements import flip_cards
from vrag_kit.workspace import display_path, portable_path

DIRECTIONS: dict[Hashable, str] = {"n_improved": "higher in B", "n_worsened": "higher in A"}
"""Titles of the two directions on the page."""
_NO_NAME = re.compile(r"[^\w.]+")
"""What does not stand in the name of a folder."""
_LONGEST = 100
"""Characters of such a name."""
APART = "Scored by different judges"
"""Prefix of the note if different judges scored the two sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """The two sides of a comparison, A and B: where their answers are, and which are used."""

    a: Path
    b: Path
    choose_a: Sequence[str] = ()
    """Filters "column=value", as in "model=field-guide-vlm-few"."""
    choose_b: Sequence[str] = ()
    only: str = ""
    """Only experiments whose name contains this are compared."""

    def answers(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Load the saved answers of A and B; raises `VragError` as `load_answers` does."""
        if self.b == self.a and bool(self.choose_a) != bool(self.choose_b):
            there, missing = ("--a", "--b") if self.choose_a else ("--b", "--a")
            raise VragError(
                f"compare: {there} is given without {missing}, and both sides are {self.a}. Say"
                f" what the other side is, as in {missing} model=other, or name a second folder."
            )
        a = load_answers(self.a, only=self.only)
        return a, a if self.b == self.a else load_answers(self.b, only=self.only)

    def paired_answers(self) -> pd.DataFrame:
        """Return `paired_answers` of A and B; raises `VragError` as it and `load_answers` do."""
        return self.pair(*self.answers())

    def pair(self, a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
        """Return `paired_answers` of two tables, filtered and named as the sides are."""
        return paired_answers(a, b, **self._choices(), names=self._names())

    def unmatched_counts(self, a: pd.DataFrame, b: pd.DataFrame) -> list[str]:
        """Return `unmatched_counts` of two tables, filtered as the sides are."""
        return unmatched_counts(a, b, **self._choices())

    def differences(self, a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
        """Return `config_diff` of two tables, filtered as the sides are."""
        return config_diff(a, b, **self._choices())

    def _choices(self) -> dict[str, dict[str, str]]:
        return {"choose_a": _choice(self.choose_a), "choose_b": _choice(self.choose_b)}

    def folder(self) -> str:
        """Return a folder name that identifies this comparison:
        "figures_model-mine_vs_model-yours".
        """
        other = [] if self.b == self.a else [display_path(self.b)]
        b = [*other, *self.choose_b]
        words = [display_path(self.a), *self.choose_a, *(["vs", *b] if b else []), self.only]
        name = "_".join(_NO_NAME.sub("-", word).strip("-.") for word in filter(None, words))
        mark = hashlib.sha256(repr(self).encode()).hexdigest()[:8]
        return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{mark}"

    def _names(self) -> tuple[str, str]:
        """The places of both, as far as they differ."""
        places = [place.absolute() for place in (self.a, self.b)]
        common = os.path.commonpath([place.parent for place in places])
        return places[0].relative_to(common).as_posix(), places[1].relative_to(common).as_posix()


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The tables and notes of a comparison."""

    table: pd.DataFrame
    """The differences, as on the page."""
    left_out: list[str]
    """Counts of answers that only one side has, one line per side."""
    differs: pd.DataFrame
    """The configuration that differs between the sides (`config_diff`), in full."""
    judges: str
    """A sentence that names who scored the answers; "" if that was not saved."""


def compare_runs(sides: RunComparison, to: Path, *, most: int = 100) -> ComparisonResult:
    """Compare two sides, write the results into the folder `to`, and return the tables of the page.
    Files: compare.html, the differences as compare.csv and compare.tex, what_differs.csv, and
    flips.csv with every answer whose score differs, without absolute paths. The page shows the
    first `most` flips of each direction and stratum with their images. Raises `VragError` as
    `RunComparison.paired_answers` does, and if files cannot be written.
    """
    a, b = sides.answers()
    pairs = sides.pair(a, b)
    differences = to_percent(paired_tests(pairs))
    flipped = flips(pairs)
    found = ComparisonResult(
        table=paired_tests_table(differences, pairs),
        left_out=sides.unmatched_counts(a, b),
        differs=sides.differences(a, b),
        judges=_judges(differences),
    )
    try:
        write_file(
            to / "compare.csv", order_columns(differences).to_csv(index=False, lineterminator="\n")
        )
        write_file(to / "compare.tex", to_latex(found.table))
        write_file(to / "what_differs.csv", found.differs.to_csv(index=False, lineterminator="\n"))
        write_file(
            to / "flips.csv", _flips_to_send(flipped).to_csv(index=False, lineterminator="\n")
        )
        write_file(to / "compare.html", _page(found, differences, pairs, flipped, most))
    except OSError as error:
        raise VragError(
            f"{to}: the comparison cannot be written ({error.strerror}). Name another folder by"
            " --to, or free space."
        ) from error
    return found


def _judges(differences: pd.DataFrame) -> str:
    """Who scored the answers, and what that means where it was not the same one."""
    if "judge_a" not in differences:
        return ""
    apart = differences["verdict"] == OTHERWISE
    if not apart.any():
        names = [name for name in differences["judge_a"].unique() if name]
        return f"Scored by {', '.join(names)}, A and B alike." if names else ""
    both = differences.loc[apart, ["judge_a", "judge_b"]].drop_duplicates()
    pairs = list(both.itertuples(index=False, name=None))
    names = [f"{a} / {b}" for a, b in pairs]
    if any(a != b and a.partition(" (")[0] == b.partition(" (")[0] for a, b in pairs):
        names.append("of one name, but with another rubric, scale, class or version of a model")
    what = "this compares" if apart.all() else f"{apart.sum()} of the comparisons compare"
    return (
        f"{APART} ({'; '.join(names)}): {what} judges, not answers, and no"
        " difference is claimed there. To compare answers, run one side again with the other's"
        " `judge`: its answers are stored, so that only verdicts are asked for."
    )


def _flips_to_send(flipped: pd.DataFrame) -> pd.DataFrame:
    """The flips for a file that is sent to others."""
    stores = {name: flipped[name].map(portable_path) for name in ("store_a", "store_b")}
    pixels = [f"relevant_pixel_hashes_{side}" for side in "ab"]  # of no use to a reader
    return plain_cells(flipped.assign(**stores).drop(columns=pixels, errors="ignore"))


def _choice(words: Sequence[str]) -> dict[str, str]:
    """Column → value, of "column=value"."""
    for each in words:
        if "=" not in each:
            raise VragError(f"compare: found {each!r}, expected column=value, as in model=mine.")
    return dict(each.split("=", 1) for each in words)


def _page(
    found: ComparisonResult,
    differences: pd.DataFrame,
    pairs: pd.DataFrame,
    flipped: pd.DataFrame,
    most: int,
) -> str:
    template = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("compare.html")
    parts = []
    for (direction, stratum), mine in flipped.groupby(["direction", "stratum"], sort=False):
        cards = [Markup(card) for card in flip_cards(mine.head(most))]  # it escapes all text
        title = DIRECTIONS[direction] + (f" ({stratum})" if stratum != NO_STRATUM else "")
        asked = mine["query_id"].nunique()
        parts.append({"title": title, "count": len(mine), "questions": asked, "cards": cards})
    a, b = (side_name(side, pairs[side.lower()].iloc[0]) for side in "AB")
    texts = 1 + list(found.table).index(a)
    last = found.table.columns[-1]  # the verdict, which is out of sight there
    table = found.table[[last, *found.table.columns.drop(last)]]
    alike = differences[differences["verdict"] != OTHERWISE]
    told = {"a": a, "b": b, "left_out": found.left_out, "judges": found.judges, "parts": parts}
    counts = {
        "answers": len(pairs),
        "same": int((pairs["answer_a"] == pairs["answer_b"]).sum()),
        "questions": pairs["query_id"].nunique(),
        "alike": len(alike),
        "claims": int(alike["verdict"].isin(["higher", "lower"]).sum()),
        "blind": int(alike["mde"].isna().sum()),
    }
    return template.render(
        {**told, **counts},
        columns=list(table.columns),
        texts=texts,
        rows=table.to_numpy().tolist(),
        differs=found.differs.to_numpy().tolist(),
        apart="stratum" in table,
        as_a_says=bool(judges_differ(pairs).any()),
        by_interval=table["p"].str.endswith("(t)").any(),
        smallest=_reach(alike["mde"]),
    )


def _reach(smallest: pd.Series) -> str:
    """The differences that the rows could have shown: "24.9 to 63.3"; "" for none."""
    known = smallest.dropna()
    ends = dict.fromkeys(f"{end:.1f}" for end in (known.min(), known.max()))
    return " to ".join(ends) if len(known) else ""
