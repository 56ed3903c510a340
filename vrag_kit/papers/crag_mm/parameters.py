"""Prompts of the paper (A.4, A.5.2), in its layout and in that of its code; and the searches and
conversations that a notebook's parameters name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks
from vrag_kit.config import Entry
from vrag_kit.files import project_path
from vrag_kit.generation import ConversationConfig, TokenLimit, ask_conversations, load_rewriter
from vrag_kit.generation.prompts import PromptSet, open_prompt_set, read_prompts
from vrag_kit.judging import Judge
from vrag_kit.papers.crag_mm.chroma import EMBEDDINGS
from vrag_kit.papers.crag_mm.conversations import early_stopping
from vrag_kit.papers.crag_mm.search import (
    NOT_REWRITTEN,
    SearchPipeline,
    sample_questions,
    with_mismatched_images,
)
from vrag_kit.retrieval import SearchService, cached_service, image_service, text_service
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

REWRITING = read_prompts(Path(__file__).with_name("rewriting.yaml"))
"""Prompts for query rewriting, written for the kit: the settings image, retrieved, image_history
and retrieved_history.
"""
_PAPER = read_prompts(Path(__file__).with_name("prompts.yaml"))
_CODE = replace(_PAPER, settings={arm: {None: f"{arm}, code"} for arm in _PAPER.settings})
PROMPT_SETS: Mapping[str, PromptSet] = {"paper": _PAPER, "code": _CODE}
"""Maps a layout's name to its prompts. paper: one user message. code: system, image, contexts,
earlier turns and query as separate messages. Both have the settings mm_llm, task_1, task_2 and
task_3, and do not shorten answers.
"""


def load_prompts(
    prompt_set: str = "paper", image_context_chars: int = 8_000, web_context_chars: int = 32_000
) -> PromptSet:
    """Returns the prompts in a layout, with contexts of at most so many characters; by default the
    paper's 2k and 8k tokens, as counted by its code. A layout may be a custom YAML file, which
    defaults to the paper's prompts.

    Raises `VragError` as `open_prompt_set` does.
    """
    budgets = {"image_chars": image_context_chars, "web_chars": web_context_chars}
    return open_prompt_set(prompt_set, PROMPT_SETS, "prompt_set").with_values(budgets)


Parameter = Mapping[str, Any]  # Any: a notebook's parameters have values of any type


def index_folders(folder: Path, split: str) -> tuple[Path, Path]:
    """Return the folders of a split's image index and web index."""
    name = split.replace("_", "-")
    return folder / f"image-index-{name}", folder / f"web-index-{name}"


def open_services(
    benchmark: Benchmark,
    search: Parameter,
    at: Workspace,
    indexes: str = "",
    prompts: Parameter | None = None,
) -> SearchPipeline:
    """Opens the searches over a benchmark's own documents: a pipeline whose `images` and `web` are
    None where the benchmark has no documents to search.

    `search` has fields of `SearchPipeline`, and the entries image_service, a retriever that takes
    an image, web_service, one that takes text, "bm25" or "words", and rewriter, if `rewrite` needs
    a model; it gets as many characters of the retrieved entries as `prompts` allows. Where the
    folder `indexes` holds a converted official index of the split at the end of the benchmark's
    name, its vectors are searched, and vectors of queries are cached there. Search results are
    cached in the workspace's `cache_dir`, as are other vectors. Raises `VragError` for a `rewrite`
    that needs a model where `rewriter` is "", and as `image_service`, `text_service` and
    `load_rewriter` do.
    """
    models = ("image_service", "web_service", "rewriter")
    options = {name: value for name, value in search.items() if name not in models}
    if prompts and search["rewriter"] and search["rewrite"] not in NOT_REWRITTEN:
        rewriting = REWRITING.with_values({"image_chars": prompts["image_context_chars"]})
        options["rewriter"] = load_rewriter(search["rewriter"], at, prompts=rewriting)
    folders = index_folders(project_path(indexes), benchmark.name.rpartition("-turn-")[2])
    found: dict[str, SearchService] = {}
    for kind, folder in zip(("image", "web"), folders, strict=True):
        documents = {
            name: document
            for name, document in benchmark.corpus.items()
            if document.metadata.get("source") == f"{kind}_search"
        }
        converted = indexes and (folder / EMBEDDINGS).is_dir()
        vectors = at.model_copy(update={"cache_dir": folder / EMBEDDINGS}) if converted else at
        entry = search[f"{kind}_service"]
        if kind == "image" and documents:
            found["images"] = image_service(documents, entry, vectors)
        elif documents:
            found["web"] = text_service(documents, entry, vectors, chunks=page_chunks)
    options |= {kind: cached_service(each, at.cache_dir) for kind, each in found.items()}
    return SearchPipeline(**options)


@dataclass(frozen=True, slots=True)
class Setup:
    """The parameters by which a notebook searches for questions and asks models about them."""

    search: Parameter
    """image_search and web_search together: image_service, web_service, image_k, web_k,
    similarity_threshold, rewrite and rewriter, the model that rewrites questions where `rewrite`
    needs one.
    """
    prompts: Parameter
    """prompt_set, image_context_chars and web_context_chars."""
    conversation: Parameter
    """history, early_stopping, max_answer_tokens and answer_tokenizer ("": answers count in
    full).
    """
    decoding: Parameter
    at: Workspace
    indexes: str = ""

    def open(self, benchmark: Benchmark) -> SearchPipeline:
        """Opens the search pipeline over a benchmark's own documents (`open_services`)."""
        return open_services(benchmark, self.search, self.at, self.indexes, self.prompts)

    def ask(
        self,
        models: Sequence[Entry],
        benchmark: Benchmark,
        searches: SearchPipeline,
        settings: Sequence[str],
        *,
        history: str = "",
        judge: Judge | None = None,
    ) -> pd.DataFrame:
        """Asks models every question in the `settings`; rows as of `ask_conversations`.

        `history` replaces that of the parameters. With a `judge`, conversations end early if the
        parameter early_stopping is true; without one all turns are asked. Raises `VragError` for an
        unknown history, and as `ask_conversations` does.
        """
        given, cut = self.conversation, None
        if given["answer_tokenizer"]:
            cut = TokenLimit(given["max_answer_tokens"], given["answer_tokenizer"])
        config = ConversationConfig(
            prompts=load_prompts(**self.prompts),
            history=history or given["history"],
            search=searches,
            stop=early_stopping(judge, benchmark) if judge and given["early_stopping"] else None,
            cut=cut,
        )
        asked = models, benchmark, searches.contexts(benchmark, settings), self.at
        return ask_conversations(*asked, conversation=config, decoding=self.decoding)

    def ask_with_control(
        self,
        models: Sequence[Entry],
        benchmark: Benchmark,
        searches: SearchPipeline,
        settings: Sequence[str],
        count: int | None,
        *,
        judge: Judge | None = None,
    ) -> pd.DataFrame:
        """Asks as `ask` does, then asks `count` of the questions, or conversations, with mismatched
        images (None: all). The column image is "matched" or "mismatched".
        """
        control = sample_questions(with_mismatched_images(benchmark), count)
        asked = {
            image: self.ask(models, questions, searches, settings, judge=judge)
            for image, questions in (("matched", benchmark), ("mismatched", control))
        }
        return pd.concat(asked, names=["image"]).reset_index("image")
