"""The two searches, the search pipeline and the conversations that a notebook's parameters name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks.datasets.crag_mm import SPLITS
from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks
from vrag_kit.config import Entry, hardware_of
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    ConversationConfig,
    EarlyStop,
    TokenLimit,
    ask_conversations,
    load_rewriter,
)
from vrag_kit.judging import Judge
from vrag_kit.papers.crag_mm.chroma import EMBEDDINGS
from vrag_kit.papers.crag_mm.conversations import early_stopping
from vrag_kit.papers.crag_mm.oracles import sample_questions
from vrag_kit.papers.crag_mm.prompts import load_prompts, rewriting_prompts
from vrag_kit.papers.crag_mm.search import SearchPipeline, with_mismatched_images
from vrag_kit.retrieval import SearchService, cached_service, image_service, text_service
from vrag_kit.types import Benchmark, Json
from vrag_kit.workspace import path as project_path

Parameter = Mapping[str, Any]  # Any: a notebook's parameters have values of any type
SOURCES = ("image_search", "web_search")
"""Metadata "source" of the documents of the two indexes."""


def index_folders(folder: Path, split: str) -> tuple[Path, Path]:
    """Return the folders of a split's image index and web index."""
    name = split.replace("_", "-")
    return folder / f"image-index-{name}", folder / f"web-index-{name}"


def open_services(
    benchmark: Benchmark,
    images: Entry,
    web: Entry,
    cache_dir: Path | str,
    *,
    indexes: str = "",
    device: str = "cpu",
) -> SearchPipeline:
    """Open the searches over a benchmark's own documents: `images` and `web` of a pipeline, None
    where it has no documents to search.

    `images` is a retriever that takes an image; `web` one that takes text, "bm25" or "words".
    Where the folder `indexes` holds a converted official index of the benchmark's split, its
    vectors are searched, and vectors of queries are cached there. Search results are cached in
    `cache_dir`, as are other vectors. Raises `VragError` as `image_service` and `text_service` do.
    """
    folders = index_folders(project_path(indexes), _split(benchmark)) if indexes else (None, None)
    services: dict[str, SearchService] = {}
    for source, entry, folder in zip(SOURCES, (images, web), folders, strict=True):
        documents = {
            name: document
            for name, document in benchmark.corpus.items()
            if document.metadata.get("source") == source
        }
        if not documents:
            continue
        converted = folder is not None and (folder / EMBEDDINGS).is_dir()
        vectors = folder / EMBEDDINGS if folder and converted else project_path(cache_dir)
        if source == "image_search":
            service = image_service(documents, entry, vectors, device=device)
        else:
            service = text_service(documents, entry, vectors, chunks=page_chunks, device=device)
        services[source] = cached_service(service, cache_dir)
    return SearchPipeline(images=services.get(SOURCES[0]), web=services.get(SOURCES[1]))


def _split(benchmark: Benchmark) -> str:
    """The split that a benchmark's name ends with."""
    for split in SPLITS:
        if benchmark.name.endswith(split.replace("_", "-")):
            return split
    raise VragError(
        f"{benchmark.name}: its name does not end with a split, so that its indexes are not known;"
        f" expected one of {', '.join(SPLITS)}. Open it by open_single_turn or open_multi_turn."
    )


def open_search_pipeline(
    benchmark: Benchmark,
    search: Parameter,
    prompts: Parameter,
    *,
    answers_dir: Path | str,
    cache_dir: Path | str,
    hardware: Parameter,
    indexes: str = "",
) -> SearchPipeline:
    """Open the search pipeline over a benchmark's own documents.

    `search` has the keys image_service, web_service, image_k, web_k, similarity_threshold, rewrite
    and rewriter, the model that rewrites questions where `rewrite` needs one; it gets as many
    characters of the retrieved entries as `prompts` allows, and its replies are stored in
    `answers_dir`. `indexes` and `cache_dir` are as `open_services` takes them. Raises `VragError`
    for an unknown `rewrite`, for one that needs a model where `rewriter` is "", and as
    `open_services` and `load_rewriter` do.
    """
    device, entries = hardware_of(hardware).device, (search["image_service"], search["web_service"])
    services = open_services(benchmark, *entries, cache_dir, indexes=indexes, device=device)
    model = None
    if search["rewriter"] and search["rewrite"] not in ("none", "reference"):
        questions = rewriting_prompts(image_chars=prompts["image_context_chars"])
        model = load_rewriter(search["rewriter"], answers_dir, prompts=questions, hardware=hardware)
    return replace(
        services,
        image_k=search["image_k"],
        web_k=search["web_k"],
        threshold=search["similarity_threshold"],
        rewrite=search["rewrite"],
        rewriter=model,
    )


def open_conversation_config(
    prompts: Parameter,
    conversation: Parameter,
    arms: SearchPipeline,
    *,
    stop: EarlyStop | None = None,
) -> ConversationConfig:
    """Return the prompts of turns and how conversations are held.

    `prompts` has the keys prompt_set, image_context_chars and web_context_chars, `conversation`
    history, max_answer_tokens and answer_tokenizer ("": answers count in full). Raises `VragError`
    for an unknown prompt_set or history.
    """
    cut = None
    if conversation["answer_tokenizer"]:
        cut = TokenLimit(conversation["max_answer_tokens"], conversation["answer_tokenizer"])
    prompt_set = load_prompts(
        prompts["prompt_set"],
        image_chars=prompts["image_context_chars"],
        web_chars=prompts["web_context_chars"],
    )
    return ConversationConfig(
        prompts=prompt_set, history=conversation["history"], search=arms, stop=stop, cut=cut
    )


@dataclass(frozen=True, slots=True)
class Setup:
    """The parameters by which a notebook searches for questions and asks models about them."""

    search: Parameter
    """image_search and web_search together, as `open_search_pipeline` takes them."""
    prompts: Parameter
    conversation: Parameter
    decoding: Parameter
    hardware: Parameter
    answers_dir: Path | str
    cache_dir: Path | str
    indexes: str = ""

    def open(self, benchmark: Benchmark) -> SearchPipeline:
        """Opens the search pipeline over a benchmark's documents; see `open_search_pipeline`."""
        where: Json = {"answers_dir": self.answers_dir, "cache_dir": self.cache_dir}
        where |= {"indexes": self.indexes, "hardware": self.hardware}
        return open_search_pipeline(benchmark, self.search, self.prompts, **where)

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
        parameter early_stopping is true; without one all turns are asked.
        """
        conversation = {**self.conversation, **({"history": history} if history else {})}
        stops = conversation["early_stopping"]
        stop = early_stopping(judge, benchmark) if judge and stops else None
        config = open_conversation_config(self.prompts, conversation, searches, stop=stop)
        how: Json = {"conversation": config, "decoding": self.decoding, "hardware": self.hardware}
        contexts = searches.contexts(benchmark, settings)
        return ask_conversations(models, benchmark, contexts, self.answers_dir, **how)

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
