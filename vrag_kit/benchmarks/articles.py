"""Read encyclopedia articles, split them into sections, and chunk them for retrieval.

The procedure follows Visual-RAG's appendix B.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from vrag_kit.errors import VragError

CHUNK_TOKENS = 150
"""Length of a chunk in Visual-RAG, whose paper does not name the tokenizer.

The kit counts words and punctuation marks.
"""
DROPPED = frozenset(
    {
        "references",
        "reference",
        "see also",
        "external links",
        "external link",
        "further reading",
        "notes",
        "footnotes",
        "bibliography",
        "sources",
        "citations",
        "works cited",
        "literature",
        "literature cited",
        "gallery",
        "image gallery",
        "images",
        "explanatory notes",
        "notes and references",
        "references and notes",
    }
)
"""Headings of sections without informative sentences, in lower case; the paper names three
of them and "etc.".
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
            raise VragError(
                f"{folder}: no articles there; expected .txt or .md files, one article each, or a"
                " data set saved by `save_to_disk`."
            )
        return len(files), (_read_file(file) for file in files)
    rows = _data_set(str(source))
    return len(rows), (parse_article(row["title"], row["text"]) for row in rows)


def _read_file(file: Path) -> Article:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VragError(
            f"{file}: cannot be read as UTF-8 text ({error}). Save the article as UTF-8, or remove"
            " the file."
        ) from error
    first = text.partition("\n")[0]
    if first.startswith("# "):
        return parse_article(first[2:].strip(), text[len(first) :])
    return parse_article(file.stem.replace("_", " "), text)


def _data_set(source: str) -> Any:  # a `datasets.Dataset`, which has no types
    import datasets

    name = source.partition(":")[0]
    configuration = source.partition(":")[2] or None
    try:
        if Path(source).is_dir():
            rows = datasets.load_from_disk(source)
        else:
            rows = datasets.load_dataset(name, configuration, split="train")
    except Exception as error:  # the library raises dozens of kinds
        raise VragError(
            f"articles {source!r}: neither a folder of articles nor a data set that can be loaded"
            f" ({type(error).__name__}: {error}). Give a folder, or a name such as"
            ' "wikimedia/wikipedia:20231101.en".'
        ) from error
    if isinstance(rows, dict):  # splits
        rows = next(iter(rows.values()))
    if missing := {"title", "text"} - set(rows.column_names):
        raise VragError(
            f"articles {source!r}: no column {sorted(missing)[0]!r}; found"
            f" {', '.join(rows.column_names)}, expected 'title' and 'text'."
        )
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
    Raises `VragError` if `tokens` is below 1.
    """
    if tokens < 1:
        raise VragError(f"a chunk of {tokens} tokens cannot be; expected 1 or more.")
    chunks: list[str] = []
    for group in _merged(article.sections, tokens):
        if len(group) > 1:
            chunks.append(" ".join(_headed(heading, text) for heading, text in group))
        else:
            ((heading, text),) = group
            chunks += [_headed(heading, piece) for piece in _pieces(split_sentences(text), tokens)]
    return [f"{article.title}. {chunk}" for chunk in chunks]


def _merged(sections: Iterable[Section], tokens: int) -> list[list[Section]]:
    """The sections that are kept; adjacent short ones together."""
    kept = [section for section in sections if section[0].strip().lower() not in DROPPED]
    return _grouped(kept, [count_tokens(text) for _, text in kept], tokens - 1)


def _headed(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading else text


def _pieces(parts: list[str], tokens: int) -> list[str]:
    """Sentences joined to pieces of at most `tokens`, but for one that is longer itself."""
    return [" ".join(piece) for piece in _grouped(parts, list(map(count_tokens, parts)), tokens)]


def _grouped(items: Sequence[T], lengths: Sequence[int], most: int) -> list[list[T]]:
    """Adjacent items in groups of at most `most` tokens, but for one that is longer itself."""
    groups: list[list[T]] = []
    length = 0  # of the last group
    for item, more in zip(items, lengths, strict=True):
        if not groups or length + more > most:
            groups.append([])
            length = 0
        groups[-1].append(item)
        length += more
    return groups
