r"""A table as a LaTeX `tabular` that fits its page: booktabs' rules, all text escaped."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi o pi rho varsigma"
    " sigma tau upsilon phi chi psi omega"
)
_MATHS = {
    **{chr(code): name for code, name in enumerate(_GREEK.split(), start=ord("α"))},
    **{"Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Π": "Pi", "Σ": "Sigma"},
    **{"Φ": "Phi", "Ψ": "Psi", "Ω": "Omega", "≤": "le", "≥": "ge", "≈": "approx", "≠": "ne"},
    **{"±": "pm", "×": "times", "·": "cdot", "∼": "sim", "∞": "infty", "→": "rightarrow"},
    **{"←": "leftarrow", "√": "surd", "✓": "surd", "✗": "times"},
}
"""Sign → its command in formulas, of LaTeX alone."""
_TEX = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"$\\{name}$" for sign, name in _MATHS.items()},
    **{"<": "$<$", ">": "$>$", "−": "$-$", "′": "$'$", "ο": "o"},
    **{"–": "--", "—": "---", "…": r"\dots{}", "«": "$\\ll$", "»": "$\\gg$"},
}
_SPECIAL = re.compile("|".join(map(re.escape, _TEX)))
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")
_NUMBERS = re.compile(r"[-−+<>\s\d.,%–]*")
_BREAKS = re.compile(r"(?<=[_/])(?=\S)")
_WORDS = re.compile(r"[^\s_/-]*[_/-]?")
_WIDE = re.compile(r"[A-Zmw−]")
_KNOWN = frozenset("¡¿£§©®°²³µ¹¼½¾ßøØæÆœŒłŁ‘’“”•€™ı")
"""Signs beyond ASCII that any LaTeX sets as they are, beside letters with accents."""
_ACCENTS = frozenset("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
TOO_WIDE = "% wider than a page of article: choose fewer columns, or turn the page"
"""The comment before a table that no letters are small enough for."""
_SIZES = (("", 66, 3.0), (r"\footnotesize", 80, 3.0))
_SMALLEST = (r"\scriptsize\setlength{\tabcolsep}{2pt}", 88, 1.4)
"""Command, characters in a line of `article`, and how many of them a column's margins take."""
_LINES = {"": 40, r"\footnotesize": 50, _SMALLEST[0]: 60}
"""Lines of a table that fit a page of `article` beside its caption, by its letters."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the columns are set."""

    columns: str
    size: str = ""
    wrapped: Sequence[str] = ()
    """Of each column the command with which its cells break into lines; "": they do not."""
    rooms: Sequence[int] = ()
    """Of each column the characters in a line."""
    too_wide: bool = False
    """Whether even so it does not fit."""


def as_latex(table: pd.DataFrame, *, decimals: int = 2) -> str:
    r"""The table as a LaTeX `tabular` with booktabs' rules: numbers flush right with
    `decimals`, whole ones without; named row labels first; all text escaped.

    What is wider than \linewidth is set smaller, and then its widest columns break into
    lines. What is longer than a page is a `longtable`, which breaks over pages and
    stands outside of a `table`. Where its width is not enough, it is long, or it holds
    letters that pdflatex does not know, a comment before it says so.
    """
    labelled = any(label is not None for label in table.index.names)
    flat = table.reset_index() if labelled else table
    rows = [[_told(value, decimals) for value in row] for row in flat.itertuples(index=False)]
    names = flat.columns.to_list()
    last = [str(name[-1] if isinstance(name, tuple) else name) for name in names]
    layout = _layout([last, *rows], numbers_from=1)
    # in a column of lines \\ ends a line, not the row
    end = r"\tabularnewline" if layout.wrapped and layout.wrapped[-1] else r"\\"
    head = [f"{' & '.join(cells)} {end}" for cells in _heads(flat, layout)]
    body = [f"{' & '.join(_cells(row, layout))} {end}" for row in rows]
    long = len(head) + sum(_height(row, layout) for row in rows) > _LINES[layout.size]
    kind = "longtable" if long else "tabular"
    lines = [rf"\begin{{{kind}}}{{{layout.columns}}}", r"\toprule", *head, r"\midrule"]
    lines += [r"\endhead", r"\bottomrule", r"\endfoot", *body] if long else [*body, r"\bottomrule"]
    lines += [rf"\end{{{kind}}}"]
    if layout.size:
        lines = [rf"{{{layout.size}", *lines, "}"]
    if unknown := sorted(set(filter(_unknown, "".join(lines)))):
        lines.insert(0, f"% holds {' '.join(unknown)}: compile with lualatex or xelatex")
    if long:
        lines.insert(0, r"% longer than a page: \usepackage{longtable}, outside of a table")
    if layout.too_wide:
        lines.insert(0, TOO_WIDE)
    return "\n".join([*lines, ""])


def _layout(rows: Sequence[Sequence[str]], *, numbers_from: int) -> _Layout:
    """The largest letters in which the columns fit beside one another, else those in which
    they fit when the widest break into lines.
    """
    cells = list(zip(*rows, strict=True))
    numbers = [
        len(rows) > numbers_from and all(map(_NUMBERS.fullmatch, column[numbers_from:]))
        for column in cells
    ]
    plain = "".join("r" if number else "l" for number in numbers)
    widest = [max(map(len, column)) for column in cells]
    for size, line, margin in _SIZES:
        if sum(widest) <= line - margin * len(cells):
            return _Layout(plain, size, rooms=widest)
    least = [_longest_word(column) for column in cells]
    for size, line, margin in (_SIZES[-1], _SMALLEST):
        most = _cap(widest, least, line - margin * (len(cells) - 1))
        if most or size == _SMALLEST[0]:
            break
    columns, wrapped = "", []
    for letter, width, word in zip(plain, widest, least, strict=True):
        room = max(word, most)
        fits = width <= room
        columns += letter if fits else rf"p{{{room / line:.3f}\linewidth}}"
        flush = r"\raggedleft " if letter == "r" else r"\raggedright "
        wrapped.append("" if fits else flush)
    rooms = [max(word, most) for word in least]
    return _Layout(f"@{{}}{columns}@{{}}", size, wrapped, rooms, too_wide=most == 0)


def _height(row: Sequence[str], layout: _Layout) -> int:
    """The lines that a row takes, about."""
    pairs = zip(row, layout.rooms, strict=True)
    return max(1, *(math.ceil(len(text) / max(1, room)) for text, room in pairs))


def _longest_word(column: Sequence[str]) -> int:
    """In characters; a wide one counts as one and a half."""
    words = _WORDS.findall(_MINUS.sub("−", " ".join(column)))
    return math.ceil(max(len(word) + len(_WIDE.findall(word)) / 2 for word in words))


def _cap(widest: Sequence[int], least: Sequence[int], room: float) -> int:
    """The most characters that a column may have, so that all fit; 0: they never do."""
    for most in range(max(widest), 0, -1):
        pairs = zip(widest, least, strict=True)
        if sum(min(width, max(word, most)) for width, word in pairs) <= room:
            return most
    return 0


def _cells(row: Sequence[str], layout: _Layout) -> list[str]:
    if not layout.wrapped:
        return list(map(_tex, row))
    pairs = zip(row, layout.wrapped, strict=True)
    return [_in_lines(text, flush) if flush else _tex(text) for text, flush in pairs]


def _in_lines(text: str, flush: str) -> str:
    """A cell that breaks at blanks, and behind underscores and slashes."""
    parts = map(_tex, _BREAKS.split(" ".join(text.split())))
    return flush + r"\allowbreak ".join(parts)


def _heads(table: pd.DataFrame, layout: _Layout) -> list[list[str]]:
    """The lines of column names; a name that spans several columns stands over them."""
    if not isinstance(table.columns, pd.MultiIndex):
        return [_cells([str(name) for name in table.columns], layout)]
    heads = []
    for level in range(table.columns.nlevels - 1):
        head: list[str] = []
        spans: list[int] = []
        before: object = None
        for name in table.columns:
            above = name[: level + 1]
            if head and above == before:
                spans[-1] += 1
            else:
                head.append(_tex(str(name[level])))
                spans.append(1)
            before = above
        heads.append([_over(text, span) for text, span in zip(head, spans, strict=True)])
    return [*heads, _cells([str(name[-1]) for name in table.columns], layout)]


def _over(text: str, columns: int) -> str:
    return text if columns == 1 else rf"\multicolumn{{{columns}}}{{c}}{{{text}}}"


def _told(value: object, decimals: int) -> str:
    """A value in words, "–" where there is none."""
    if value is None or value is pd.NA or value != value:  # NaN differs from itself
        return "–"
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def _tex(text: str) -> str:
    signed = _MINUS.sub("−", " ".join(text.split()))
    return _SPECIAL.sub(lambda found: _TEX[found[0]], signed)


def _unknown(sign: str) -> bool:
    """Whether pdflatex stops at a sign."""
    if sign.isascii() or sign in _KNOWN:
        return False
    bare = unicodedata.normalize("NFD", sign)
    return not (bare[0].isascii() and _ACCENTS.issuperset(bare[1:]))
