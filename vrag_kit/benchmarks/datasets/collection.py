"""Load several data sets of any supported layout into one schema, each under a configured
name and domain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from pathlib import Path

from vrag_kit.benchmarks.datasets.chart_mrag import load_chart_mrag
from vrag_kit.benchmarks.datasets.mrag_bench import load_mrag_bench
from vrag_kit.benchmarks.datasets.pages import load_page_benchmark
from vrag_kit.benchmarks.datasets.visual_rag import load_visual_rag
from vrag_kit.benchmarks.datasets.webqa import load_webqa
from vrag_kit.config import unknown_option
from vrag_kit.errors import VragError, did_you_mean, short_repr
from vrag_kit.files import project_path
from vrag_kit.types import Benchmark, JsonView

Entry = Mapping[str, str]
"""`layout`, one of `LAYOUTS`, with the keys of that layout (`entry_keys`)."""
SCHEMA: JsonView = {
    "domain": "",
    "hops": None,
    "required_modality": "image",
    "reference": "",
    "gold_claims": (),
}
"""Metadata keys of every query in a collection, with the values for keys that a loader does
not set.
"""
_ANSWERS = ("options", "open")
_NO_PATHS = ("split", "questions", "answers")


def _load_mrag_bench(
    rows: Path | str, corpus: Path | None = None, *, answers: str = _ANSWERS[0], name: str
) -> Benchmark:
    if answers not in _ANSWERS:
        expected = " or ".join(_ANSWERS)
        raise VragError(f"suite: answers of {name} is {answers!r}; expected {expected}.")
    found = load_mrag_bench(rows, corpus, name=name)
    if answers == _ANSWERS[0]:
        return found
    queries = {key: replace(query, choices=()) for key, query in found.queries.items()}
    return found.derive(answers, queries=queries)


LAYOUTS: Mapping[str, Callable[..., Benchmark]] = {
    "webqa": partial(load_webqa, questions="all"),
    "charts": load_chart_mrag,
    "pages": load_page_benchmark,
    "visual-rag": load_visual_rag,
    "mrag-bench": _load_mrag_bench,
}
"""Layout → its loader, whose parameters are the keys of an entry (`entry_keys`)."""


def entry_keys(layout: str) -> dict[str, bool]:
    """Map the keys of the entries of a layout to whether they are needed."""
    parameters = signature(LAYOUTS[layout]).parameters
    ours = ("name", "cache_dir", "problems")
    needed = {key: each.default is Parameter.empty for key, each in parameters.items()}
    keys = {key: is_needed for key, is_needed in needed.items() if key not in ours}
    return {"layout": False, "domain": False, **keys}


def load_collection(entries: Mapping[str, Entry]) -> dict[str, Benchmark]:
    """Load the benchmark of each entry, keyed by name, in their order.

    An entry is {"layout": "pages", "rows": …} for `load_page_benchmark` (also split,
    ocr), {"layout": "charts", "rows": …, "texts": …} for `load_chart_mrag` (also
    chart_texts), {"layout": "webqa", "annotations": …} for `load_webqa` (also images,
    split, and questions, "all" unless given), {"layout": "visual-rag", "annotations": …,
    "image_root": …} for `load_visual_rag`, or {"layout": "mrag-bench", "rows": …} for
    `load_mrag_bench` (also corpus and answers, "options" unless given; "open"
    shows none, and the correct option's text is the accepted answer). Paths are relative to
    the project's root, and `rows` may be a hub name. Any entry may have a `domain`, which
    the queries' metadata hold.

    The metadata of every query hold domain, hops (None if unknown),
    required_modality ("image", "text" or "both"), reference ("" without) and gold_claims
    (() without). Raises `VragError` for an unknown layout, an unknown or missing key, and as
    the loaders do.
    """
    if not entries:
        raise VragError('suite is empty; expected data sets: {"name": {"layout": …, …}, …}.')
    for name, entry in entries.items():
        _check(name, entry)
    return {name: _load(name, entry) for name, entry in entries.items()}


def _load(name: str, entry: Entry) -> Benchmark:
    options = {key: value for key, value in entry.items() if value}
    layout, domain = options.pop("layout"), options.pop("domain", "")
    files = {key: project_path(value) for key, value in options.items() if key not in _NO_PATHS}
    if "rows" in entry and not files["rows"].is_dir():
        del files["rows"]  # a name of the hub, perhaps
    benchmark = LAYOUTS[layout](**{**options, **files}, name=name)
    queries = {
        key: replace(query, metadata={**SCHEMA, **query.metadata, "domain": domain})
        for key, query in benchmark.queries.items()
    }
    return replace(benchmark, queries=queries)


def _check(name: str, entry: Entry) -> None:
    """Raise `VragError` for an entry that cannot be read."""
    layout = str(entry.get("layout", ""))
    if layout not in LAYOUTS:
        expected = f"one of {', '.join(LAYOUTS)}.{did_you_mean(layout, LAYOUTS)}"
        raise VragError(f"suite: {name} has layout {layout!r}; expected {expected}")
    known = entry_keys(layout)
    if unknown := [key for key in entry if key not in known]:
        raise unknown_option(f"suite: {name}", unknown[0], known)
    needed = [key for key, is_needed in known.items() if is_needed]
    for key in [*needed, *entry]:
        value = entry.get(key, "")
        if not isinstance(value, str) or (key in needed and not value):
            expected = f"texts for {', '.join(needed)}"
            raise VragError(f"suite: {key} of {name} is {short_repr(value)}; expected {expected}.")
