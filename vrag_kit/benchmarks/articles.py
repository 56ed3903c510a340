"""Read encyclopedia articles, split them into sections, and chunk them for retrieval.

The procedure follows Visual-RAG's appendix B.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from vrag_kit.errors import VragError

CHUNK_TOKENS = 150
"""Length of a chunk in Visual-RAG, whose paper does not name the tokenizer.

The kit counts words and punctuation marks.
"""
DROPPED = re.compile(
    r"references?|citations|works cited|literature( cited)?|bibliography|sources|see also"
    r"|external links?|further reading|(explanatory )?notes|footnotes|notes and references"
    r"|references and notes|(image )?gallery|images",
    re.IGNORECASE,
)
"""Headings of sections without informative sentences; the paper names three of them and
"etc.".
"""
_MARKED = re.compile(r"^\s*(?:={2,}\s*(.+?)\s*={2,}|#{2,}\s*(.+?))\s*$")
_ENDS = re.compile(r"[.!?:;,…][\"'”’)\]]*$")
_BREAK = re.compile(r"(?<=[.!?])[\"”’)\]]*\s+(?=[\"“‘(\[]?[A-Z0-9À-Þ])")
_ABBREVIATIONS = (
    r"e\.g|i\.e|cf|ca|c|approx|sp|spp|subsp|ssp|var|syn|nov|incl|fig|vol|st|mt|dr|mr|mrs|prof|al"
)
_ABBREVIATED = re.compile(rf"(?:\b(?i:{_ABBREVIATIONS})|\b[A-Z])\.$")

T = TypeVar("T")
Section = tuple[str, str]
"""(heading, text); the opening of an article has the heading ""."""


@dataclass(frozen=True, slots=True)
class Article:
    """An encyclopedia article: its title and its sections."""

    title: str
    sections: tuple[Section, ...]  # in order

    @property
    def text(self) -> str:
        """The headings and texts of all sections, joined by newlines."""
        return "\n".join(filter(None, chain.from_iterable(self.sections)))


def parse_article(title: str, text: str) -> Article:
    """Split the plain text of an article into sections.

    A heading is "== Heading ==", "## Heading", or, as in the plain text of Hugging
    Face's Wikipedia, a line of at most ten words without closing punctuation that
    follows a blank line and is not the last. Empty sections are left out.
    """
    sections: list[tuple[str, list[str]]] = [("", [])]
    lines = [line.strip() for line in text.splitlines()]
    for number, line in enumerate(lines):
        if marked := _MARKED.match(line):
            sections.append((marked[1] or marked[2], []))
        elif _is_bare_heading(lines, number):
            sections.append((line, []))
        elif line:
            sections[-1][1].append(line)
    return Article(title, tuple((heading, " ".join(body)) for heading, body in sections if body))


def _is_bare_heading(lines: Sequence[str], number: int) -> bool:
    """Whether a line is short, without closing punctuation, behind a blank one, and not
    the last.
    """
    line = lines[number]
    is_short = 0 < len(line.split()) <= 10 and not _ENDS.search(line)
    return is_short and number > 0 and not lines[number - 1] and any(lines[number + 1 :])


def read_articles(source: Path | str) -> tuple[int, Iterator[Article]]:
    """Read articles from a folder or a Hugging Face data set; returns (count, iterator).

    A folder holds .txt or .md files, one article each, in order of their names; the
    title is a first line "# Title", else the file's name. A data set has the columns
    title and text; it is a folder of `save_to_disk`, or "<name>:<configuration>" such
    as "wikimedia/wikipedia:20231101.en". Raises `VragError` for anything else.
    """
    folder = Path(source)
    saved = [folder / "dataset_info.json", folder / "dataset_dict.json"]
    if folder.is_dir() and not any(file.is_file() for file in saved):
        files = sorted([*folder.glob("*.txt"), *folder.glob("*.md")])
        if not files:
            raise VragError(f"{folder}: no articles there; expected .txt or .md files.")
        return len(files), (_read_file(file) for file in files)
    rows = _data_set(str(source))
    return len(rows), (parse_article(row["title"], row["text"]) for row in rows)


def _read_file(file: Path) -> Article:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VragError(f"{file}: cannot be read as UTF-8 text ({error}).") from error
    first = text.partition("\n")[0]
    if first.startswith("# "):
        return parse_article(first[2:].strip(), text[len(first) :])
    return parse_article(file.stem.replace("_", " "), text)


def _data_set(source: str) -> Any:  # a `datasets.Dataset`, which has no types
    import datasets

    if Path(source).is_dir():
        rows = datasets.load_from_disk(source)
    else:
        name, configuration = f"{source}:".split(":")[:2]
        rows = datasets.load_dataset(name, configuration or None, split="train")
    if isinstance(rows, dict):  # splits
        rows = next(iter(rows.values()))
    if missing := sorted({"title", "text"} - set(rows.column_names)):
        found = ", ".join(rows.column_names)
        raise VragError(f"articles {source!r}: no column {missing[0]!r}; found {found}.")
    return rows


def count_tokens(text: str) -> int:
    """Count the words and punctuation marks in a text."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, in order; abbreviations and initials do not end one."""
    found: list[str] = []
    for piece in _BREAK.split(text):
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] += f" {piece}"
        elif piece.strip():
            found.append(piece.strip())
    return found


def chunk_article(article: Article, tokens: int = CHUNK_TOKENS) -> list[str]:
    """Split an article into chunks of about `tokens` tokens, each "Title. Section: sentences".

    Sections of `DROPPED` are left out. Adjacent sections that together are shorter than
    `tokens` become one chunk, their headings kept. A longer section is split after
    sentences, into chunks of at most `tokens` (except for a single longer sentence); no
    chunk crosses from a long section into another. Headings and title are not counted.
    """
    kept = [section for section in article.sections if not DROPPED.fullmatch(section[0].strip())]
    chunks: list[str] = []
    for group in _grouped(kept, lambda section: count_tokens(section[1]), tokens - 1):
        if len(group) > 1:
            chunks.append(" ".join(_headed(heading, text) for heading, text in group))
        else:
            ((heading, text),) = group
            pieces = _grouped(split_sentences(text), count_tokens, tokens)
            chunks += [_headed(heading, " ".join(piece)) for piece in pieces]
    return [f"{article.title}. {chunk}" for chunk in chunks]


def _headed(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading else text


def _grouped(items: Iterable[T], length: Callable[[T], int], most: int) -> list[list[T]]:
    """Adjacent items in groups of at most `most` tokens, but for one that is longer itself."""
    groups: list[list[T]] = []
    total = 0  # of the last group
    for item in items:
        if not groups or total + length(item) > most:
            groups.append([])
            total = 0
        groups[-1].append(item)
        total += length(item)
    return groups
