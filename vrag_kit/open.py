"""Open data by name: a synthetic edition ("field-guide-small"), which is generated if it is
missing, or real data, by a mapping of where their files are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from vrag_kit.benchmarks import (
    load_inat_corpus,
    load_species_pages,
    load_visual_rag,
    load_webqa,
    read_species,
)
from vrag_kit.benchmarks.images import (
    ImageFile,
    find_damaged,
    list_images,
)
from vrag_kit.benchmarks.knowledge_base import Page
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.processes import available_cores
from vrag_kit.synthetic.editions import DRAWN, Source
from vrag_kit.synthetic.editions import synthetic_mark as synthetic_mark
from vrag_kit.synthetic.visual_rag.guide import generate_field_guide
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path

_OPENED = 3000
"""Maximum number of images that a dry run opens: some ten seconds."""
_TITLES = {"field-guide": "Field Guide", "field-guide-small": "Field Guide (small)"}


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of data: the parameter that names it, and what its mapping may hold."""

    parameter: str
    layout: Mapping[str, str]  # key of the mapping → file in the folder of a drawn edition
    title: str = ""  # of a drawn edition, {} being the edition's; "" for data without name
    optional: tuple[str, ...] = ()

    @property
    def needed(self) -> list[str]:
        """The keys that a mapping of real files must have."""
        names = ["name"] if self.title else []
        return [key for key in [*self.layout, *names] if key not in self.optional]


_BENCHMARK = _Kind("data", {"annotations": "annotations.jsonl", "image_root": "images"}, "{}")
_OTHER_CORPUS = _Kind("second_corpus", {"images": "images24"}, "plates")
_ARTICLES = _Kind(
    "articles",
    {"pages": "articles", "species_list": "categories.json", "tells": "articles_tell.json"},
    optional=("tells",),
)
_WEBQA = _Kind(
    "webqa",
    {"annotations": "webqa/WebQA_train_val.json", "images": "webqa/imgs.tsv"},
    "{} with captions",
    ("split",),
)
_PICTURES = _Kind(
    "image_source",
    {"images": "images", "species_list": "categories.json", "articles": "articles"},
    "{}",
    ("species_list", "articles"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeciesImages:
    """Pictures without questions, of which a benchmark can be made."""

    name: str  # in titles
    images: Path  # a folder of pictures for each species, or kind of thing
    names: Mapping[str, str]  # scientific → common name; empty without a species list
    species_list: Path | None
    articles: Path | None


def data_title(source: Source) -> str:
    """What data are called in titles; nothing is opened."""
    if isinstance(source, Mapping):
        return str(source.get("name", ""))
    return _TITLES.get(source, source)


def open_benchmark(data: Source) -> Benchmark:
    """The questions and photographs of a drawn edition, or of {"annotations": a
    Visual-RAG file, "image_root": the folder of species folders, "name": for titles}.

    Raises `VragError` for an unknown name or key, and as `load_visual_rag` does.
    """
    files = _files(_BENCHMARK, data)
    annotations, image_root = project_path(files["annotations"]), project_path(files["image_root"])
    return load_visual_rag(annotations, image_root, name=files["name"])


def open_inat_corpus(other_corpus: Source, benchmark: Benchmark) -> Benchmark:
    """The questions of a benchmark over a second corpus without labels: the plates of a
    drawn edition, or {"images": folder of species folders, "name": for tables}.
    """
    files = _files(_OTHER_CORPUS, other_corpus)
    return load_inat_corpus(benchmark, project_path(files["images"]), name=files["name"])


def open_articles(articles: Source, cache_dir: Path) -> tuple[dict[str, str], dict[str, Page]]:
    """(species, pages): scientific → common name, and the article of each species that
    has one; of a drawn edition, or of {"pages": a folder, or a data set of the hub,
    "species_list": iNaturalist's categories}. What was found is kept in `cache_dir`.
    """
    files = _files(_ARTICLES, articles)
    species = read_species(project_path(files["species_list"]))
    where = files["pages"]
    return species, load_species_pages(
        where if ":" in where else project_path(where), species, cache_dir
    )


def queries_answered_by_articles(articles: Source, benchmark: Benchmark) -> frozenset[str]:
    """The queries that the articles answer, where that is known: by the list of a drawn
    edition, or by {"tells": a JSON list of questions}; else none.
    """
    files = _files(_ARTICLES, articles)
    if not files.get("tells"):
        return frozenset()
    told = set(json.loads(project_path(files["tells"]).read_text(encoding="utf-8")))
    return frozenset(name for name, query in benchmark.queries.items() if query.text in told)


def open_webqa(webqa: Source) -> Benchmark:
    """Questions on images with captions in WebQA's layout, of a drawn edition, or of
    {"annotations": …, "images": imgs.tsv, "name": for titles, "split": "val" or "train"}.
    """
    files = _files(_WEBQA, webqa)
    return load_webqa(
        project_path(files["annotations"]),
        project_path(files["images"]),
        split=files.get("split", "val"),
        name=files["name"],
    )


def open_images(pictures: Source) -> SpeciesImages:
    """The photographs of a drawn edition without its questions, or {"images": a folder
    of folders, "name": for titles} with "species_list" and "articles" where there are any.

    Raises `VragError` for an unknown name or key and, in a dry run, for files that are no images,
    or are damaged.
    """
    files = _files(_PICTURES, pictures)
    if current_dry_run() is not None:
        _check_images(project_path(files["images"]))
    species_list = project_path(files["species_list"]) if files.get("species_list") else None
    return SpeciesImages(
        name=files["name"],
        images=project_path(files["images"]),
        names=read_species(species_list) if species_list else {},
        species_list=species_list,
        articles=project_path(files["articles"]) if files.get("articles") else None,
    )


def _check_images(root: Path) -> None:
    """Raise `VragError` for files in species folders that are damaged. At most
    `_OPENED` images are opened, spread over all.
    """
    folders = [each for each in sorted(root.iterdir()) if each.is_dir()] if root.is_dir() else []
    files = list(chain.from_iterable(map(list_images, folders)))
    opened = files[:: -(-len(files) // _OPENED)] if files else []
    if damaged := find_damaged(map(ImageFile, opened), workers=available_cores()):
        raise VragError(
            f"{damaged[0]} So are {len(damaged):,} of {len(opened):,} that were opened in {root}."
        )


def _files(kind: _Kind, source: Source) -> dict[str, str]:
    """Where the files are, and their name; a drawn edition is drawn. Raises `VragError`
    for an unknown name or key, and for one that is missing.
    """
    files = _named(kind, source)
    if isinstance(source, str):
        generate_field_guide(DRAWN[source], project_path(f"data/{source}"))
    return files


def _named(kind: _Kind, source: Source) -> dict[str, str]:
    """Where the files would be, and their name."""
    expected = (
        f"expected {' or '.join(map(repr, DRAWN))}, or a mapping with {', '.join(kind.needed)}."
    )
    if isinstance(source, Mapping):
        return _checked(kind, source, expected)
    if source not in DRAWN:
        hint = did_you_mean(str(source), DRAWN)
        raise VragError(f"{kind.parameter} is {source!r}; {expected}{hint}")
    files = {key: f"data/{source}/{file}" for key, file in kind.layout.items()}
    return {**files, "name": kind.title.format(_TITLES[source])}


def _checked(kind: _Kind, source: Mapping[str, str], expected: str) -> dict[str, str]:
    if unknown := sorted(set(source) - {*kind.needed, *kind.optional}):
        hint = did_you_mean(unknown[0], [*kind.needed, *kind.optional])
        raise VragError(f"{kind.parameter} has an unknown key {unknown[0]!r}; {expected}{hint}")
    if missing := [key for key in kind.needed if not source.get(key)]:
        raise VragError(f"{kind.parameter}: {missing[0]} is missing; {expected}")
    for key, value in source.items():
        if not isinstance(value, str):
            raise VragError(f"{kind.parameter}: {key} is {value!r}; expected a text.")
    return dict(source)
