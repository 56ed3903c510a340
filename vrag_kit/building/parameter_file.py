"""Parameter file of a custom benchmark: the notebooks that run on it, and their parameters."""

from __future__ import annotations

import yaml

from vrag_kit.plain import Json, JsonView
from vrag_kit.types import Benchmark

_MODELS: JsonView = {
    "models": ["field-guide-vlm-few", "field-guide-vlm-many"],
    "tour_model": "field-guide-vlm-many",
    "retrievers": ["field-guide-clip-64", "field-guide-clip-32"],
    "retriever": "field-guide-clip-64",
    "text_retriever": "field-guide-clip-64",
}
"""The notebooks' own."""
_STAY = (*_MODELS, "judge", "decoding", "hardware")
_FOR = {
    "query_index": "00_tour",
    "tour_model": "00_tour",
    "retriever": "04_top_k_vs_one_in_k",
    "max_clues": "06_number_of_clues",
    "articles": "09_wikipedia_text_rag",
    "text_retriever": "09_wikipedia_text_rag",
}
"""Parameter → the notebook without which it is not in the file."""
_ABOVE = """\
# 20_build_a_benchmark writes this file anew whenever it runs. What you change of models,
# retrievers, judge, decoding and hardware stays; for other changes copy the file.
"""
_BY_WHOM = """\
# These small models know the drawn Field Guide alone: what they say of other pictures means
# nothing. Put your own in their place, such as Qwen/Qwen2.5-VL-7B-Instruct for answers and
# ViT-L-14-336-quickgelu/openai for retrieval; params/visual_rag/one_gpu.yaml shows how.
"""


def parameter_file_text(benchmark: Benchmark, name: str, data: JsonView, before: JsonView) -> str:
    """Return the text of a parameter file for `vrag run` on a benchmark.
    It lists the notebooks that can run (the others in a comment, each with its reason), `data` (its
    location, and articles where there are any), and the default models. The models of `before`, the
    values of the replaced file, have precedence. Results go to folders that end with `name`.
    """
    from vrag_kit.papers.visual_rag.pools import max_clues, unmet_requirements  # heavy

    reasons = unmet_requirements(benchmark, articles="articles" in data)
    run = [book for book, reason in reasons.items() if not reason]
    values = {
        **data,
        "query_index": 0,
        "max_clues": max_clues(benchmark),
        "figures_dir": f"runs/figures-{name}",
        "trec_dir": f"runs/trec-{name}",
    }
    by_whom = {**_MODELS, **{each: before[each] for each in _STAY if each in before}}
    lines = [f"# {book}: {reason}" for book, reason in reasons.items() if reason]
    return "".join(
        (
            _ABOVE,
            _dumped({"notebooks": [_with_folder(book) for book in run]}),
            "\n".join(["# Not on this list:", *lines, ""]),
            _dumped(_taken(values, run)),
            _BY_WHOM,
            _dumped(_taken(by_whom, run)),
        )
    )


def _taken(values: JsonView, run: list[str]) -> Json:
    """Those that a notebook of the list declares."""
    return {name: value for name, value in values.items() if _FOR.get(name, run[0]) in run}


def _with_folder(book: str) -> str:
    """A notebook's name as parameter files have it; the tour is in no folder."""
    return book if book == "00_tour" else f"visual_rag/{book}"


def _dumped(values: JsonView) -> str:
    """As YAML, lists and mappings of plain values on a line."""
    text: str = yaml.safe_dump(
        dict(values), sort_keys=False, allow_unicode=True, default_flow_style=None, width=98
    )
    return text
