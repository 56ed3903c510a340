"""The arms and the talks of CRAG-MM as a notebook's parameters name them, and what the
drawn editions are asked with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrag_kit.config import Entry, hardware_of
from vrag_kit.generation import ConversationConfig, EarlyStop, TokenLimit, load_rewriter
from vrag_kit.papers.crag_mm import SearchPipeline, load_prompts, rewriting_prompts
from vrag_kit.synthetic.crag_mm.search_config import SearchServices, open_services
from vrag_kit.types import Benchmark

Parameter = Mapping[str, Any]  # Any: a notebook's parameters have values of any type
SEARCH = {"image_k": 10, "similarity_threshold": 0.85, "web_k": 5, "rewrite": "retrieved"}
"""How deep the drawn editions are searched …"""
PROMPTS = {"prompt_set": "paper", "image_context_chars": 1600, "web_context_chars": 3600}
"""… how much of what was found is shown …"""
DEFAULT_CONVERSATION = {
    "history": "generated",
    "early_stopping": False,
    "max_answer_tokens": 75,
    "answer_tokenizer": "",
}
"""… and how their conversations are held."""


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
    """The arms over a benchmark's own documents: `search` names both searches,
    image_service and web_service, and the rewriter, and has the keys that `build_search_pipeline`
    takes; `indexes` and `cache_dir` are as `open_services` takes them. Raises as both do.
    """
    images, web = search["image_service"], search["web_service"]
    services = open_services(
        benchmark, images, web, cache_dir, indexes=indexes, device=hardware_of(hardware).device
    )
    return build_search_pipeline(
        services,
        search,
        prompts,
        rewriter=search["rewriter"],
        answers_dir=answers_dir,
        hardware=hardware,
    )


def build_search_pipeline(
    services: SearchServices,
    search: Parameter,
    prompts: Parameter,
    *,
    rewriter: Entry,
    answers_dir: Path | str,
    hardware: Parameter,
) -> SearchPipeline:
    """What the arms search with: `search` has the keys image_k, web_k,
    similarity_threshold and rewrite.

    `rewriter` names the model that says questions anew where `rewrite` wants one; it is
    shown as many characters of what was found as `prompts` allows, and its words are
    kept in `answers_dir`. Raises `VragError` for an unknown way to rewrite, for one that
    needs a model where `rewriter` is "", and as `load_rewriter` does.
    """
    questions = rewriting_prompts(image_chars=prompts["image_context_chars"])
    model = None
    if rewriter and search["rewrite"] not in ("none", "reference"):
        model = load_rewriter(rewriter, answers_dir, prompts=questions, hardware=hardware)
    return SearchPipeline(
        images=services.images,
        web=services.web,
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
    history: str = "",
    stop: EarlyStop | None = None,
) -> ConversationConfig:
    """How turns are worded and conversations held: `prompts` has the keys prompt_set,
    image_context_chars and web_context_chars, `conversation` history, max_answer_tokens and
    answer_tokenizer ("": answers count in full).

    `history`, where it is not "", takes the place of that in `conversation`. Raises `VragError`
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
        prompts=prompt_set,
        history=history or conversation["history"],
        search=arms,
        stop=stop,
        cut=cut,
    )
