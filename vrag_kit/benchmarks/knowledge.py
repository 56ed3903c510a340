"""A knowledge base of text: one page a species, matched by name, in chunks that
questions can be searched in (Visual-RAG, appendix B.1).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.articles import CHUNK_TOKENS, Article, chunk_article, read_articles
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.progress import track
from vrag_kit.types import Benchmark, Evidence

ROUNDS = ("scientific name", "common name", "mention")
"""How a page was matched, best first."""
_BINOMIAL = re.compile(r"(?=\b([A-Z][a-z]+ [a-z][a-z-]+)\b)")


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a species."""

    species: str  # scientific name
    matched_by: str  # one of ROUNDS
    article: Article


def read_species(path: Path | str) -> dict[str, str]:
    """Scientific name → common name ("" where there is none), from iNaturalist's
    category file: a JSON list, or an object with the list under "categories", of
    {"name": …, "common_name": …}. Raises `VragError` naming the file, and the entry
    that lacks a name.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VragError(
            f"{path}: cannot be read as JSON ({error}). Expected iNaturalist's categories, such as "
            f'[{{"name": "Branta leucopsis", "common_name": "Barnacle Goose"}}, …].'
        ) from error
    rows = content.get("categories") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not rows:
        raise VragError(
            f"{path}: found {type(content).__name__} without a list of categories; expected"
            ' [{"name": …, "common_name": …}, …].'
        )
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise VragError(
                f'{path}: category {number} is {str(row)[:60]!r}, expected an object with "name"'
                ' (and "common_name").'
            )
    return {row["name"]: str(row.get("common_name") or "") for row in rows}


def match_pages(species: Mapping[str, str], articles: Iterable[Article]) -> dict[str, Page]:
    """The page of each species (scientific → common name) in one pass over `articles`;
    species without one are absent.

    In this order, as in the paper: the page whose title is the scientific name; whose
    title is the common name; the one that mentions the scientific name earliest in its
    text. Titles are compared without regard to case. Of equals the first title in the
    alphabet is taken. Species of one common name may share a page.
    """
    by_name: list[dict[str, list[str]]] = [defaultdict(list), defaultdict(list)]
    for scientific, common in species.items():
        for names, name in zip(by_name, (scientific, common), strict=True):
            if name:
                names[name.lower()].append(scientific)
    odd = [
        name
        for name in species
        if not _BINOMIAL.fullmatch(name) and not re.fullmatch(r"[A-Z][a-z]+ [a-z][a-z-]+", name)
    ]
    best: dict[str, tuple[tuple[int, int, str], Article]] = {}

    def offer(scientific: str, rank: int, position: int, article: Article) -> None:
        key = (rank, position, article.title)
        if scientific not in best or key < best[scientific][0]:
            best[scientific] = key, article

    for article in articles:
        for rank, names in enumerate(by_name):
            for scientific in names.get(article.title.strip().lower(), ()):
                offer(scientific, rank, 0, article)
        text = article.text
        for found in _BINOMIAL.finditer(text):
            if found[1] in species:
                offer(found[1], 2, found.start(), article)
        for name in odd:
            if (position := text.find(name)) >= 0:
                offer(name, 2, position, article)
    return {
        scientific: Page(scientific, ROUNDS[best[scientific][0][0]], best[scientific][1])
        for scientific in species
        if scientific in best
    }


def load_pages(
    source: Path | str, species: Mapping[str, str], cache_dir: Path | str
) -> dict[str, Page]:
    """`match_pages` over `read_articles(source)`, kept in `cache_dir`: a whole
    Wikipedia is read once.

    A folder is read anew when one of its files was changed, added or removed, or when
    this code was; a data set of the hub only then, as its name stands for its content.
    Raises `VragError` as `read_articles` does.
    """
    code = [
        (Path(__file__).parent / name).read_text(encoding="utf-8")
        for name in ("articles.py", "knowledge.py")
    ]
    key = hashlib.sha256(
        json.dumps([str(source), _stamp(Path(source)), sorted(species.items()), code]).encode()
    ).hexdigest()[:16]
    kept = Path(cache_dir) / f"pages-{key}.jsonl"
    if not kept.is_file():
        total, articles = read_articles(source)
        pages = match_pages(species, track(articles, "reading articles", total, "articles"))
        rows = [
            json.dumps(
                [page.species, page.matched_by, page.article.title, page.article.sections],
                ensure_ascii=False,
            )
            for page in pages.values()
        ]
        write_file(kept, "".join(f"{row}\n" for row in rows))
    found = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    return {
        name: Page(name, how, Article(title, tuple((heading, text) for heading, text in sections)))
        for name, how, title, sections in found
    }


def knowledge_base(
    benchmark: Benchmark, pages: Mapping[str, Page], *, tokens: int = CHUNK_TOKENS
) -> Benchmark:
    """The benchmark's questions over the chunks of all pages; a chunk is relevant when
    it is of the page of the query's species.

    So `hit` at k says whether the right page was found, as in the paper: whether a
    chunk answers, nobody has labelled. A query whose species has no page has no
    relevant chunk. Pages that several species share are cut once; the corpus is
    searched as a whole. Raises `VragError` when none of the queries' species has a
    page.
    """
    if not any(query.entity in pages for query in benchmark.queries.values()):
        raise VragError(
            f"no article was matched to a species of {benchmark.name}, such as"
            f" {next(iter(benchmark.queries.values())).entity!r}. Check the articles' titles, and"
            " that scientific names are written as in the annotations."
        )
    corpus: dict[str, Evidence] = {}
    chunks: dict[Article, list[str]] = {}
    for article in dict.fromkeys(page.article for page in pages.values()):
        stem = re.sub(r"\s+", "_", article.title.strip())
        name = next(
            each
            for each in (stem, *(f"{stem}~{n}" for n in range(2, len(chunks) + 3)))
            if f"{each}#0" not in corpus
        )
        chunks[article] = [
            f"{name}#{number}" for number, _ in enumerate(chunk_article(article, tokens))
        ]
        corpus.update(
            {
                doc_id: Evidence(doc_id=doc_id, text=text, metadata={"title": article.title})
                for doc_id, text in zip(
                    chunks[article], chunk_article(article, tokens), strict=True
                )
            }
        )
    qrels = {
        query_id: dict.fromkeys(
            chunks[pages[query.entity].article] if query.entity in pages else (), 1
        )
        for query_id, query in benchmark.queries.items()
    }
    digest = hashlib.sha256(
        "\n".join(
            [
                benchmark.fingerprint,
                *(f"{doc_id} {document.text}" for doc_id, document in corpus.items()),
            ]
        ).encode()
    )
    return replace(
        benchmark,
        name=f"{benchmark.name}, articles",
        fingerprint=digest.hexdigest(),
        corpus=corpus,
        qrels=qrels,
        pools=None,
    )


def match_table(species: Iterable[str], pages: Mapping[str, Page]) -> pd.DataFrame:
    """How many species were matched in which round: columns matched_by ("no page"
    last), species, share (in [0, 1]).
    """
    names = list(species)
    counts = (
        pd.Series([pages[name].matched_by if name in pages else "no page" for name in names])
        .value_counts()
        .reindex([*ROUNDS, "no page"], fill_value=0)
    )
    return (
        counts.rename_axis("matched_by")
        .reset_index(name="species")
        .assign(share=lambda table: table["species"] / max(1, len(names)))
    )


def _stamp(folder: Path) -> list[tuple[str, int, int]]:
    return (
        sorted(
            (str(entry.relative_to(folder)), entry.stat().st_mtime_ns, entry.stat().st_size)
            for entry in folder.rglob("*")
            if entry.is_file()
        )
        if folder.is_dir()
        else []
    )
