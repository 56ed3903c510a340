"""`vrag compare`: two runs, or two arms, as one page that opens offline, and as tables."""

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
    arm_differences,
    arm_table,
    flips,
    in_percent,
    load_answers,
    paired_answers,
    what_differs,
)
from vrag_kit.analysis.arm_differences import OTHERWISE
from vrag_kit.analysis.one_sided import only_one_side
from vrag_kit.analysis.strata import UNTOLD
from vrag_kit.analysis.two_arms import judges_differ, side_name
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.plotting.latex import as_latex
from vrag_kit.plotting.save import plain_cells, tidy
from vrag_kit.widgets.flips import flip_cards
from vrag_kit.workspace import named_from_project, shown

DIRECTIONS: dict[Hashable, str] = {"gained": "higher in B", "lost": "higher in A"}
"""What the page calls the two directions."""
_NO_NAME = re.compile(r"[^\w.]+")
"""What does not stand in the name of a folder."""
_LONGEST = 100
"""Characters of such a name."""
APART = "Scored by different judges"
"""Begins what is said where it was not one judge that scored both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What is compared: where the answers of A and B are, and which of them."""

    a: Path
    b: Path
    choose_a: Sequence[str] = ()
    """ "column=value", as in "model=field-guide-vlm-few"."""
    choose_b: Sequence[str] = ()
    only: str = ""
    """The experiments whose name contains this."""

    def answers(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """What is saved of A and of B; raises `VragError` as `load_answers` does."""
        if self.b == self.a and bool(self.choose_a) != bool(self.choose_b):
            there, missing = ("--a", "--b") if self.choose_a else ("--b", "--a")
            raise VragError(
                f"compare: {there} is given without {missing}, and both sides are {self.a}. Say"
                f" what the other side is, as in {missing} model=other, or name a second folder."
            )
        a = load_answers(self.a, only=self.only)
        return a, a if self.b == self.a else load_answers(self.b, only=self.only)

    def pairs(self) -> pd.DataFrame:
        """`paired_answers` of both; raises `VragError` as `load_answers` and it do."""
        return self.paired(*self.answers())

    def paired(self, a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
        """`paired_answers` of these, as the sides choose and are called."""
        return paired_answers(a, b, **self._choices(), names=self._names())

    def left_out(self, a: pd.DataFrame, b: pd.DataFrame) -> list[str]:
        """`only_one_side` of these, as the sides choose."""
        return only_one_side(a, b, **self._choices())

    def differing(self, a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
        """`what_differs` of these, as the sides choose."""
        return what_differs(a, b, **self._choices())

    def _choices(self) -> dict[str, dict[str, str]]:
        return {"choose_a": _choice(self.choose_a), "choose_b": _choice(self.choose_b)}

    def folder(self) -> str:
        """A name for a folder that no other comparison has:
        "figures_model-mine_vs_model-yours".
        """
        other = [] if self.b == self.a else [shown(self.b)]
        b = [*other, *self.choose_b]
        words = [shown(self.a), *self.choose_a, *(["vs", *b] if b else []), self.only]
        name = "_".join(_NO_NAME.sub("-", word).strip("-.") for word in filter(None, words))
        mark = hashlib.sha256(repr(self).encode()).hexdigest()[:8]
        return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{mark}"

    def _names(self) -> tuple[str, str]:
        """The places of both, as far as they differ."""
        places = [place.absolute() for place in (self.a, self.b)]
        common = os.path.commonpath([place.parent for place in places])
        return places[0].relative_to(common).as_posix(), places[1].relative_to(common).as_posix()


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison found."""

    table: pd.DataFrame
    """The differences, as the page has them."""
    left_out: list[str]
    """What only one side has, a line a side."""
    differs: pd.DataFrame
    """What is not the same on both sides (`what_differs`), texts whole."""
    judges: str
    """Who scored the answers, in a sentence; "" where that was not saved."""


def compare_runs(sides: Sides, to: Path, *, most: int = 100) -> Compared:
    """Write into the folder `to`: compare.html, the differences as compare.csv and
    compare.tex, what_differs.csv, and flips.csv with every answer whose score differs,
    without absolute paths; returns the tables of the page, and what is said above them.
    The page shows the first `most` of either direction and each stratum with their
    pictures. Raises `VragError` as `Sides.pairs` does, and when it cannot be written.
    """
    a, b = sides.answers()
    pairs = sides.paired(a, b)
    differences = in_percent(arm_differences(pairs))
    flipped = flips(pairs)
    found = Compared(
        table=arm_table(differences, pairs),
        left_out=sides.left_out(a, b),
        differs=sides.differing(a, b),
        judges=_judges(differences),
    )
    try:
        write_file(to / "compare.csv", tidy(differences).to_csv(index=False, lineterminator="\n"))
        write_file(to / "compare.tex", as_latex(found.table))
        write_file(to / "what_differs.csv", found.differs.to_csv(index=False, lineterminator="\n"))
        write_file(to / "flips.csv", _told(flipped).to_csv(index=False, lineterminator="\n"))
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


def _told(flipped: pd.DataFrame) -> pd.DataFrame:
    """The flips for a file that is sent to others."""
    stores = {name: flipped[name].map(named_from_project) for name in ("store_a", "store_b")}
    pixels = [f"relevant_pixels_{side}" for side in "ab"]  # of no use to a reader
    return plain_cells(flipped.assign(**stores).drop(columns=pixels, errors="ignore"))


def _choice(words: Sequence[str]) -> dict[str, str]:
    """Column → value, of "column=value"."""
    for each in words:
        if "=" not in each:
            raise VragError(f"compare: found {each!r}, expected column=value, as in model=mine.")
    return dict(each.split("=", 1) for each in words)


def _page(
    found: Compared,
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
        title = DIRECTIONS[direction] + (f" ({stratum})" if stratum != UNTOLD else "")
        asked = mine["query_id"].nunique()
        parts.append({"title": title, "count": len(mine), "questions": asked, "cards": cards})
    a, b = (side_name(side, pairs[side.lower()].iloc[0]) for side in "AB")
    texts = 1 + list(found.table).index(a)
    table = found.table[["B is", *found.table.columns.drop("B is")]]  # the last is out of sight
    alike = differences[differences["verdict"] != OTHERWISE]
    told = {"a": a, "b": b, "left_out": found.left_out, "judges": found.judges, "parts": parts}
    counts = {
        "answers": len(pairs),
        "same": int((pairs["answer_a"] == pairs["answer_b"]).sum()),
        "questions": pairs["query_id"].nunique(),
        "alike": len(alike),
        "claims": int(alike["verdict"].isin(["higher", "lower"]).sum()),
        "blind": int(alike["smallest"].isna().sum()),
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
        smallest=_reach(alike["smallest"]),
    )


def _reach(smallest: pd.Series) -> str:
    """The differences that the rows could have shown: "24.9 to 63.3"; "" for none."""
    known = smallest.dropna()
    ends = dict.fromkeys(f"{end:.1f}" for end in (known.min(), known.max()))
    return " to ".join(ends) if len(known) else ""
