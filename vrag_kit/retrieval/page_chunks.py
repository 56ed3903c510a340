"""Splits pages into chunks for search: title and snippet, then runs of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vrag_kit.errors import VragError
from vrag_kit.types import DocId, Document

WORDS, MOST = 512, 50
"""Words per chunk, and the maximum number of chunks per page, including the first."""
_MARK = "_chunk_"


def page_chunks(pages: Iterable[Document]) -> Iterator[Document]:
    """Yields every page's text chunks in order, with the id "<page>_chunk_<number>".

    Chunk 0 is the title (`page_name` in the metadata) and the snippet (the page's text); each later
    one is the next `WORDS` words of the full text (`page_result`), joined by single spaces. Raises
    `VragError` for a page with none of the three.
    """
    for page in pages:
        texts = [_opening(page), *_runs(page)]
        if not any(texts):
            raise VragError(
                f"page {page.doc_id!r} is empty: it has neither title, snippet nor full text, so"
                " that nothing can find it. Take it out of the index, or fetch it again."
            )
        for number, text in enumerate(texts):
            if text:
                yield Document(doc_id=f"{page.doc_id}{_MARK}{number}", text=text)


def page_of_chunk(chunk_id: str) -> DocId:
    """Returns the id of the page that a chunk was cut from."""
    return chunk_id.rpartition(_MARK)[0]


def _opening(page: Document) -> str:
    title = page.metadata.get("page_name") or ""
    return f"{title} {page.text or ''}".strip()


def _runs(page: Document) -> list[str]:
    words = (page.metadata.get("page_result") or "").split()[: WORDS * (MOST - 1)]
    return [" ".join(words[start : start + WORDS]) for start in range(0, len(words), WORDS)]
