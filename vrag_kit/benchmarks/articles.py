"""Encyclopedia articles: read them, split them into sections, and cut those into chunks
that a retriever can find (Visual-RAG, appendix B.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError

CHUNK_TOKENS = 150
"""Length of a chunk in the paper; it does not say in whose tokens.

Ours are words and punctuation marks.
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
"""Sections without sentences that inform, in lower case; the paper names three of them
and "etc.".
"""
_MARKED = re.compile(r"^\s*(?:={2,}\s*(.+?)\s*={2,}|#{2,}\s*(.+?))\s*$")
_ENDS = re.compile(r"[.!?:;,…][\"'”’)\]]*$")
_BREAK = re.compile(r"(?<=[.!?])[\"”’)\]]*\s+(?=[\"“‘(\[]?[A-Z0-9À-Þ])")
_ABBREVIATED = re.compile(
    r"(?:\b(?i:e\.g|i\.e|cf|ca|c|approx|sp|spp|subsp|ssp|var|syn|nov|incl|fig|vol|st|mt|dr|mr|mrs|prof|al)|\b[A-Z])\.$"
)


@dataclass(frozen=True, slots=True)
class Article:
    """One page of an encyclopedia."""

    title: str
    sections: tuple[
        tuple[str, str], ...
    ]  # (heading, text) in order; the opening has the heading ""

    @property
    def text(self) -> str:
        """All of it, with headings."""
        return "\n".join(part for section in self.sections for part in section if part)


def parse_article(title: str, text: str) -> Article:
    """Split a page into sections.

    A heading is "== Heading ==", "## Heading", or, as in the plain text of Hugging
    Face's Wikipedia, a line of at most ten words without closing punctuation that
    follows a blank line and is not the last. Empty sections are left out.
    """
    sections: list[tuple[str, list[str]]] = [("", [])]
    lines = [line.strip() for line in text.splitlines()]
    for number, line in enumerate(lines):
        marked = _MARKED.match(line)
        bare = (
            0 < len(line.split()) <= 10
            and not _ENDS.search(line)
            and number > 0
            and not lines[number - 1]
            and any(lines[number + 1 :])
        )
        if marked or bare:
            sections.append(((marked[1] or marked[2]) if marked else line, []))
        elif line:
            sections[-1][1].append(line)
    return Article(title, tuple((heading, " ".join(body)) for heading, body in sections if body))


def read_articles(source: Path | str) -> tuple[int, Iterator[Article]]:
    """(number of articles, the articles one by one) of a folder of files, or of a
    Hugging Face data set.

    A folder holds .txt or .md files, one article each, in order of their names; the
    title is a first line "# Title", else the file's name. A data set has the columns
    title and text; it is a folder of `save_to_disk`, or "<name>:<configuration>" such
    as "wikimedia/wikipedia:20231101.en". Raises `VragError` for anything else.
    """
    folder = Path(source)
    if folder.is_dir() and not any(
        (folder / name).is_file() for name in ("dataset_info.json", "dataset_dict.json")
    ):
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
    first, _, rest = text.partition("\n")
    return (
        parse_article(first[2:].strip(), rest)
        if first.startswith("# ")
        else parse_article(file.stem.replace("_", " "), text)
    )


def _data_set(source: str) -> Any:
    import datasets

    name, _, configuration = source.partition(":")
    try:
        rows = (
            datasets.load_from_disk(source)
            if Path(source).is_dir()
            else datasets.load_dataset(name, configuration or None, split="train")
        )
    except Exception as error:  # the library raises dozens of kinds
        raise VragError(
            f"articles {source!r}: neither a folder of articles nor a data set that can be loaded"
            f" ({type(error).__name__}: {error}). "
            f'Give a folder, or a name such as "wikimedia/wikipedia:20231101.en".'
        ) from error
    rows = next(iter(rows.values())) if isinstance(rows, dict) else rows
    if missing := {"title", "text"} - set(rows.column_names):
        raise VragError(
            f"articles {source!r}: no column {sorted(missing)[0]!r}; found"
            f" {', '.join(rows.column_names)}, expected 'title' and 'text'."
        )
    return rows


def count_tokens(text: str) -> int:
    """Words and punctuation marks."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order; a period behind an abbreviation or an initial
    ends none.
    """
    found: list[str] = []
    for piece in _BREAK.split(text):
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] += f" {piece}"
        elif piece.strip():
            found.append(piece.strip())
    return found


def chunk_article(article: Article, tokens: int = CHUNK_TOKENS) -> list[str]:
    """Chunks of about `tokens` tokens, each "Title. Section: sentences".

    Sections of `DROPPED` are left out. Adjacent sections that together are shorter than
    `tokens` become one chunk, their headings kept. A longer section is cut behind
    sentences, into chunks of at most `tokens` (but for a sentence that is longer
    itself); no chunk crosses from a long section into another. Headings and title are
    not counted. Raises `VragError` for a length below 1.
    """
    if tokens < 1:
        raise VragError(f"a chunk of {tokens} tokens cannot be; expected 1 or more.")
    kept = [
        (heading, text)
        for heading, text in article.sections
        if heading.strip().lower() not in DROPPED
    ]
    merged: list[list[tuple[str, str]]] = []
    for section in kept:
        if merged and sum(count_tokens(text) for _, text in [*merged[-1], section]) < tokens:
            merged[-1].append(section)
        else:
            merged.append([section])
    chunks = []
    for group in merged:
        if len(group) > 1:
            chunks.append(" ".join(_headed(heading, text) for heading, text in group))
        else:
            ((heading, text),) = group
            chunks += [_headed(heading, piece) for piece in _pieces(sentences(text), tokens)]
    return [f"{article.title}. {chunk}" for chunk in chunks]


def _headed(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading else text


def _pieces(parts: list[str], tokens: int) -> list[str]:
    pieces: list[list[str]] = []
    for sentence in parts:
        if pieces and sum(map(count_tokens, [*pieces[-1], sentence])) <= tokens:
            pieces[-1].append(sentence)
        else:
            pieces.append([sentence])
    return [" ".join(piece) for piece in pieces]
