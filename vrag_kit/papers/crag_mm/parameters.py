"""The two searches, the search pipeline and the conversations that a notebook's parameters name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks
from vrag_kit.config import Entry, Workspace
from vrag_kit.generation import ConversationConfig, TokenLimit, ask_conversations, load_rewriter
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.judging import Judge
from vrag_kit.papers.crag_mm.chroma import EMBEDDINGS
from vrag_kit.papers.crag_mm.conversations import early_stopping
from vrag_kit.papers.crag_mm.oracles import sample_questions
from vrag_kit.papers.crag_mm.prompts import load_prompts, rewriting_prompts
from vrag_kit.papers.crag_mm.search import NOT_REWRITTEN, SearchPipeline, with_mismatched_images
from vrag_kit.retrieval import cached_service, image_service, text_service
from vrag_kit.types import Benchmark, DocId, Document
from vrag_kit.workspace import path as project_path

Parameter = Mapping[str, Any]  # Any: a notebook's parameters have values of any type


def index_folders(folder: Path, split: str) -> tuple[Path, Path]:
    """Return the folders of a split's image index and web index."""
    name = split.replace("_", "-")
    return folder / f"image-index-{name}", folder / f"web-index-{name}"


def open_services(
    benchmark: Benchmark,
    images: Entry,
    web: Entry,
    at: Workspace,
    indexes: str = "",
) -> SearchPipeline:
    """Open the searches over a benchmark's own documents: `images` and `web` of a pipeline, None
    where it has no documents to search.

    `images` is a retriever that takes an image; `web` one that takes text, "bm25" or "words". Where
    the folder `indexes` holds a converted official index of the split at the end of the benchmark's
    name, its vectors are searched, and vectors of queries are cached there. Search results are
    cached in the workspace's `cache_dir`, as are other vectors. Raises `VragError` as
    `image_service` and `text_service` do.
    """
    cache = project_path(at.cache_dir)
    folders = index_folders(project_path(indexes), benchmark.name.rpartition("-turn-")[2])
    vectors = [
        at.model_copy(update={"cache_dir": folder / EMBEDDINGS})
        if indexes and (folder / EMBEDDINGS).is_dir()
        else at
        for folder in folders
    ]

    def documents(source: str) -> dict[DocId, Document]:
        every = benchmark.corpus.items()
        return {name: each for name, each in every if each.metadata.get("source") == source}

    found = SearchPipeline()
    if entries := documents("image_search"):
        service = image_service(entries, images, vectors[0])
        found = replace(found, images=cached_service(service, cache))
    if pages := documents("web_search"):
        service = text_service(pages, web, vectors[1], chunks=page_chunks)
        found = replace(found, web=cached_service(service, cache))
    return found


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
        """Opens the search pipeline over a benchmark's own documents; the rewriter gets as many
        characters of the retrieved entries as `prompts` allows. Raises `VragError` for a `rewrite`
        that needs a model where `rewriter` is "", and as `open_services` and `load_rewriter` do.
        """
        search, model = self.search, None
        services = open_services(
            benchmark,
            search["image_service"],
            search["web_service"],
            self.at,
            self.indexes,
        )
        if search["rewriter"] and search["rewrite"] not in NOT_REWRITTEN:
            prompts = rewriting_prompts(image_chars=self.prompts["image_context_chars"])
            model = load_rewriter(search["rewriter"], self.at, prompts=prompts)
        return replace(
            services,
            image_k=search["image_k"],
            web_k=search["web_k"],
            threshold=search["similarity_threshold"],
            rewrite=search["rewrite"],
            rewriter=model,
        )

    def prompt_set(self) -> PromptSet:
        """Returns the prompts of turns; raises `VragError` for an unknown prompt_set."""
        chars = {name: self.prompts[f"{name}_context_chars"] for name in ("image", "web")}
        return load_prompts(
            self.prompts["prompt_set"], image_chars=chars["image"], web_chars=chars["web"]
        )

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
            prompts=self.prompt_set(),
            history=history or given["history"],
            search=searches,
            stop=early_stopping(judge, benchmark) if judge and given["early_stopping"] else None,
            cut=cut,
        )
        how: Any = {"decoding": self.decoding, "conversation": config}
        contexts = searches.contexts(benchmark, settings)
        return ask_conversations(models, benchmark, contexts, self.at, **how)

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
