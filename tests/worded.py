"""Visual-RAG's wording around any question, for tests that need prompts to ask."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_kit.generation import render
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Document, LazyImage, Prompt, Query


def worded(
    template: str, words: str, images: Sequence[LazyImage] = (), passages: Sequence[str] = ()
) -> Prompt:
    """The question with these images or passages, in one of the paper's templates."""
    shown = [Document(doc_id=f"i{n}", image=image) for n, image in enumerate(images)]
    told = [Document(doc_id=f"p{n}", text=text) for n, text in enumerate(passages)]
    query = Query(query_id="q", text=words)
    return render(PROMPTS.template(template), query, [*shown, *told])
