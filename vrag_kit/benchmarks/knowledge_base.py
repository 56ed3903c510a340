"""A text knowledge base: one article per species, matched by name and split into chunks.

The procedure follows Visual-RAG's appendix B.1.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter

from vrag_kit.benchmarks import articles as article_code
from vrag_kit.benchmarks.articles import CHUNK_TOKENS, Article, chunk_article, read_articles
from vrag_kit.errors import VragError
from vrag_kit.files import project_path, write_file
from vrag_kit.log import progress
from vrag_kit.types import Benchmark, Document

ROUNDS = ("scientific name", "common name", "mention")
"""The ways in which a page is matched, best first."""
_BINOMIAL = re.compile(r"(?=\b([A-Z][a-z]+ [a-z][a-z-]+)\b)")
_NAME = re.compile(r"[A-Z][a-z]+ [a-z][a-z-]+")


@dataclass(frozen=True, slots=True)
class Page:
    """The article of a species, and how it was matched."""

    species: str  # scientific name
    matched_by: str  # one of ROUNDS
    article: Article


_PAGES = TypeAdapter(dict[str, Page])


def read_species(path: Path | str) -> dict[str, str]:
    """Read the species of a category file: scientific name → common name ("" if none).

    The file is iNaturalist's: a JSON list, or an object with the list under "categories",
    of {"name": …, "common_name": …}. Raises `VragError` naming the file for any other content.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        rows = content["categories"] if isinstance(content, dict) else content
        return {row["name"]: str(row.get("common_name") or "") for row in rows}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        expected = 'a JSON list of species, each an object with "name" and "common_name"'
        raise VragError(f"{path}: no categories ({error!r}); expected {expected}.") from error


def match_pages(species: Mapping[str, str], articles: Iterable[Article]) -> dict[str, Page]:
    """Match each species (scientific → common name) to its page in one pass over `articles`.

    Species without a page are absent. In this order, as in the paper, a page matches if its
    title is the scientific name, if its title is the common name, or if it mentions the
    scientific name earliest in its text. Titles are compared without regard to case. Ties go
    to the alphabetically first title. Species with the same common name may share a page.
    """
    titles: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for scientific, common in species.items():
        for round_, name in enumerate((scientific, common)):
            titles[name.lower()].append((scientific, round_))
    titles[""] = []  # of species without a common name
    odd = [name for name in species if not _NAME.fullmatch(name)]
    best: dict[str, tuple[tuple[int, int, str], Page]] = {}

    def offer(scientific: str, round_: int, position: int, article: Article) -> None:
        rank = (round_, position, article.title)  # the least is best
        if scientific not in best or rank < best[scientific][0]:
            best[scientific] = rank, Page(scientific, ROUNDS[round_], article)

    for article in articles:
        for scientific, round_ in titles.get(article.title.strip().lower(), ()):
            offer(scientific, round_, 0, article)
        text = article.text
        for found in _BINOMIAL.finditer(text):
            if found[1] in species:
                offer(found[1], 2, found.start(), article)
        for name in odd:
            if (position := text.find(name)) >= 0:
                offer(name, 2, position, article)
    return {scientific: best[scientific][1] for scientific in species if scientific in best}


def load_species_pages(
    source: Path | str, species: Mapping[str, str], cache_dir: Path | str
) -> dict[str, Page]:
    """Run `match_pages` over `read_articles(source)` and cache the pages in `cache_dir`.

    A folder is read again if one of its files was changed, added or removed, or if this code
    was; a data set of the hub only in the latter case, because its name identifies its
    content. Raises `VragError` as `read_articles` does.
    """
    cached = project_path(cache_dir) / f"pages-{_key(source, species)}.json"
    if not cached.is_file():
        total, articles = read_articles(source)
        pages = match_pages(species, progress(articles, "reading articles", total, "articles"))
        write_file(cached, _PAGES.dump_json(pages))
    return _PAGES.validate_json(cached.read_bytes())


def _key(source: Path | str, species: Mapping[str, str]) -> str:
    """Changes with all that decides which pages are found: articles, names and code.

    A folder's articles are known by name, time and size.
    """
    code = [Path(str(module)).read_text("utf-8") for module in (article_code.__file__, __file__)]
    files = [file for file in sorted(Path(source).rglob("*")) if file.is_file()]
    stats = [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    parts = [str(source), stats, sorted(species.items()), code]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def knowledge_base(
    benchmark: Benchmark, pages: Mapping[str, Page], *, tokens: int = CHUNK_TOKENS
) -> Benchmark:
    """Build a benchmark of the same questions over the chunks of all pages.

    A chunk is relevant if its page is that of the query's species. So `hit` at k says
    whether the correct page was found, as in the paper; labels of chunks that answer do not
    exist. A query whose species has no page has no relevant chunk. A page that several
    species share is chunked once; each query searches the whole corpus. Raises `VragError`
    if none of the queries' species has a page.
    """
    if not any(query.entity in pages for query in benchmark.queries.values()):
        species = next(iter(benchmark.queries.values())).entity
        what = f"a species of {benchmark.name}, such as {species!r}"
        raise VragError(f"no article was matched to {what}; check the articles' titles.")
    corpus: dict[str, Document] = {}
    chunks: dict[Article, list[str]] = {}
    for article in dict.fromkeys(page.article for page in pages.values()):
        name = _free_name(article.title, corpus)
        chunks[article] = []
        for number, text in enumerate(chunk_article(article, tokens)):
            doc_id = f"{name}#{number}"
            corpus[doc_id] = Document(doc_id=doc_id, text=text, metadata={"title": article.title})
            chunks[article].append(doc_id)
    qrels: dict[str, dict[str, int]] = {}
    for query_id, query in benchmark.queries.items():
        page = pages.get(query.entity)
        qrels[query_id] = dict.fromkeys(chunks[page.article], 1) if page else {}
    texts = [f"{doc_id} {document.text}" for doc_id, document in corpus.items()]
    return benchmark.derive(
        "\n".join(texts),
        name=f"{benchmark.name}, articles",
        corpus=corpus,
        qrels=qrels,
        pools=None,
    )


def _free_name(title: str, corpus: Mapping[str, Document]) -> str:
    """The title without white space, numbered when another page has it."""
    stem = re.sub(r"\s+", "_", title.strip())
    names = chain([stem], (f"{stem}~{n}" for n in count(2)))
    return next(name for name in names if f"{name}#0" not in corpus)


def match_counts(species: Iterable[str], pages: Mapping[str, Page]) -> pd.DataFrame:
    """Count the species matched in each round.

    Columns: matched_by ("no page" last), species, share (in [0, 1]).
    """
    names = list(species)
    how = pd.Series([pages[name].matched_by if name in pages else "no page" for name in names])
    counts = how.value_counts().reindex([*ROUNDS, "no page"], fill_value=0)
    table = counts.rename_axis("matched_by").reset_index(name="species")
    return table.assign(share=table["species"] / max(1, len(names)))
