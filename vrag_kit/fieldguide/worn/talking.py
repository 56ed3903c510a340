"""The arms and the talks of CRAG-MM as a notebook's parameters name them, and what the
drawn editions are asked with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vrag_kit.fieldguide.worn.searching import Services, open_services
from vrag_kit.generation import Cut, EarlyStop, Talk, load_rewriter
from vrag_kit.options import Entry
from vrag_kit.papers.crag_mm import Arms, rewriting_wording, wording_of
from vrag_kit.types import Benchmark

Parameter = Mapping[str, Any]  # Any: a notebook's parameters have values of any type
SEARCH = {"image_k": 10, "similarity_threshold": 0.85, "web_k": 5, "rewrite": "found"}
"""How deep the drawn editions are searched …"""
PROMPTS = {"layout": "paper", "image_context_chars": 1600, "web_context_chars": 3600}
"""… how much of what was found is shown …"""
TALK = {"history": "own", "stop_early": False, "answer_tokens": 75, "answer_tokenizer": ""}
"""… and how their conversations are held."""


def arms_over(
    benchmark: Benchmark,
    search: Parameter,
    prompts: Parameter,
    *,
    answers_dir: Path | str,
    cache_dir: Path | str,
    run_with: Parameter,
    indexes: str = "",
) -> Arms:
    """The arms over a benchmark's own documents: `search` names both searches,
    image_service and web_service, and the rewriter, and has the keys that `open_arms`
    takes; `indexes` and `cache_dir` are as `open_services` takes them. Raises as both do.
    """
    images, web = search["image_service"], search["web_service"]
    services = open_services(
        benchmark, images, web, cache_dir, indexes=indexes, device=run_with["device"]
    )
    return open_arms(
        services,
        search,
        prompts,
        rewriter=search["rewriter"],
        answers_dir=answers_dir,
        run_with=run_with,
    )


def open_arms(
    services: Services,
    search: Parameter,
    prompts: Parameter,
    *,
    rewriter: Entry,
    answers_dir: Path | str,
    run_with: Parameter,
) -> Arms:
    """What the arms search with: `search` has the keys image_k, web_k,
    similarity_threshold and rewrite.

    `rewriter` names the model that says questions anew where `rewrite` wants one; it is
    shown as many characters of what was found as `prompts` allows, and its words are
    kept in `answers_dir`. Raises `VragError` for an unknown way to rewrite, for one that
    needs a model where `rewriter` is "", and as `load_rewriter` does.
    """
    wording = rewriting_wording(image_chars=prompts["image_context_chars"])
    model = None
    if rewriter and search["rewrite"] not in ("none", "given"):
        model = load_rewriter(rewriter, answers_dir, wording=wording, run_with=run_with)
    return Arms(
        images=services.images,
        web=services.web,
        image_k=search["image_k"],
        web_k=search["web_k"],
        threshold=search["similarity_threshold"],
        rewrite=search["rewrite"],
        rewriter=model,
    )


def open_talk(
    prompts: Parameter,
    talk: Parameter,
    arms: Arms,
    *,
    history: str = "",
    stop: EarlyStop | None = None,
) -> Talk:
    """How turns are worded and conversations held: `prompts` has the keys layout,
    image_context_chars and web_context_chars, `talk` history, answer_tokens and
    answer_tokenizer ("": answers count in full).

    `history`, where it is not "", takes the place of that in `talk`. Raises `VragError`
    for an unknown layout or history.
    """
    cut = None
    if talk["answer_tokenizer"]:
        cut = Cut(talk["answer_tokens"], talk["answer_tokenizer"])
    wording = wording_of(
        prompts["layout"],
        image_chars=prompts["image_context_chars"],
        web_chars=prompts["web_context_chars"],
    )
    return Talk(
        wording=wording, history=history or talk["history"], search=arms, stop=stop, cut=cut
    )
