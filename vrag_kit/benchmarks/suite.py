"""Load several data sets of any supported layout into one schema, each under a configured
name and domain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vrag_kit.benchmarks.chart_mrag import load_chart_mrag
from vrag_kit.benchmarks.datasets.mrag_bench import load_mrag_bench
from vrag_kit.benchmarks.datasets.visual_rag import load_visual_rag
from vrag_kit.benchmarks.page_benchmark import load_page_benchmark
from vrag_kit.benchmarks.webqa import load_webqa
from vrag_kit.errors import VragError, did_you_mean, short_repr
from vrag_kit.types import Benchmark, JsonView, Query
from vrag_kit.workspace import path as project_path

Entry = Mapping[str, str]
"""`layout`, one of `LAYOUTS`, with the keys of that layout, and an optional `domain`."""
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
_OF_ALL = ("layout", "domain")
_ANSWERS = ("options", "open")


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout: the keys of its entries and its loader."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    load: Callable[[str, Entry], Benchmark]

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that an entry of this layout may have."""
        return (*_OF_ALL, *self.needed, *self.optional)


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


def to_common_schema(benchmark: Benchmark, domain: str = "") -> Benchmark:
    """Add the keys of `SCHEMA` to the metadata of all queries; values that a loader set
    stay.
    """
    queries = {name: _filled(query, domain) for name, query in benchmark.queries.items()}
    return replace(benchmark, queries=queries)


def _filled(query: Query, domain: str) -> Query:
    told = {**SCHEMA, **query.metadata}
    return replace(query, metadata={**told, "domain": domain} if domain else told)


def _load(name: str, entry: Entry) -> Benchmark:
    benchmark = LAYOUTS[entry["layout"]].load(name, entry)
    return to_common_schema(benchmark, entry.get("domain", ""))


def _check(name: str, entry: Entry) -> None:
    """Raise `VragError` for an entry that cannot be read."""
    if not isinstance(entry, Mapping):
        raise VragError(f"suite: {name} is {short_repr(entry)}; expected a mapping with `layout`.")
    layout = entry.get("layout", "")
    if layout not in LAYOUTS:
        expected = ", ".join(LAYOUTS)
        raise VragError(
            f"suite: {name} has layout {layout!r}; expected one of {expected}."
            f"{did_you_mean(str(layout), LAYOUTS)}"
        )
    known = LAYOUTS[layout]
    for key, value in entry.items():
        if key not in known.keys:
            raise VragError(
                f"suite: {name} has an unknown key {key!r}; {layout} takes"
                f" {', '.join(known.keys)}.{did_you_mean(key, known.keys)}"
            )
        if not isinstance(value, str):
            raise VragError(f"suite: {key} of {name} is {short_repr(value)}; expected a text.")
    if missing := [key for key in known.needed if not entry.get(key)]:
        raise VragError(
            f"suite: {name} lacks {missing[0]}; {layout} needs {', '.join(known.needed)}."
        )


def _rows(entry: Entry) -> Path | str:
    """The folder of the rows; else the name as it is, which may be one of the hub."""
    there = project_path(entry["rows"])
    return there if there.is_dir() else entry["rows"]


def _place(entry: Entry, key: str) -> Path | None:
    return project_path(entry[key]) if entry.get(key) else None


def _pages(name: str, entry: Entry) -> Benchmark:
    split = entry.get("split", "train")
    return load_page_benchmark(_rows(entry), split=split, name=name, ocr=_place(entry, "ocr"))


def _charts(name: str, entry: Entry) -> Benchmark:
    texts = project_path(entry["texts"])
    bars = _place(entry, "chart_texts")
    return load_chart_mrag(_rows(entry), texts, chart_texts=bars, name=name)


def _webqa(name: str, entry: Entry) -> Benchmark:
    return load_webqa(
        project_path(entry["annotations"]),
        _place(entry, "images"),
        split=entry.get("split", "val"),
        name=name,
        questions=entry.get("questions", "all"),
    )


def _visual_rag(name: str, entry: Entry) -> Benchmark:
    annotations = project_path(entry["annotations"])
    return load_visual_rag(annotations, project_path(entry["image_root"]), name=name)


def _mrag_bench(name: str, entry: Entry) -> Benchmark:
    answers = entry.get("answers", _ANSWERS[0])
    if answers not in _ANSWERS:
        raise VragError(
            f"suite: answers of {name} is {answers!r}; expected {' or '.join(_ANSWERS)}."
        )
    found = load_mrag_bench(_rows(entry), _place(entry, "corpus"), name=name)
    if answers == _ANSWERS[0]:
        return found
    queries = {key: replace(query, choices=()) for key, query in found.queries.items()}
    return replace(found, fingerprint=f"{found.fingerprint}/{answers}", queries=queries)


LAYOUTS = {
    "webqa": Layout(("annotations",), ("images", "split", "questions"), _webqa),
    "charts": Layout(("rows", "texts"), ("chart_texts",), _charts),
    "pages": Layout(("rows",), ("split", "ocr"), _pages),
    "visual-rag": Layout(("annotations", "image_root"), (), _visual_rag),
    "mrag-bench": Layout(("rows",), ("corpus", "answers"), _mrag_bench),
}
"""Layout → its keys and its loader."""
