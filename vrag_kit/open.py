"""Open data by name: a synthetic edition ("field-guide-small"), which is generated if it is
missing, or real data, by a mapping of where their files are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks import (
    load_inat_corpus,
    load_species_pages,
    load_visual_rag,
    load_webqa,
    read_species,
)
from vrag_kit.benchmarks.knowledge_base import Page
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.files import project_path
from vrag_kit.synthetic.editions import DRAWN, Source
from vrag_kit.synthetic.editions import synthetic_mark as synthetic_mark
from vrag_kit.synthetic.visual_rag.guide import generate_field_guide
from vrag_kit.types import Benchmark

_ARTICLES = {"pages": "articles", "species_list": "categories.json", "tells": "articles_tell.json"}
_TITLES = {"field-guide": "Field Guide", "field-guide-small": "Field Guide (small)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeciesImages:
    """Images without questions, of which a benchmark can be made."""

    name: str  # in titles
    images: Path  # a folder of images for each species, or kind of thing
    names: Mapping[str, str]  # scientific → common name; empty without a species list
    species_list: Path | None
    articles: Path | None


def open_benchmark(data: Source) -> Benchmark:
    """The questions and images of a synthetic edition, or of {"annotations": a
    Visual-RAG file, "image_root": the folder of species folders, "name": for titles}.

    Raises `VragError` for an unknown name or key, and as `load_visual_rag` does.
    """
    layout = {"annotations": "annotations.jsonl", "image_root": "images"}
    files = _files("data", data, layout, "{}")
    annotations, image_root = project_path(files["annotations"]), project_path(files["image_root"])
    return load_visual_rag(annotations, image_root, name=files["name"])


def open_inat_corpus(other_corpus: Source, benchmark: Benchmark) -> Benchmark:
    """The questions of a benchmark over a second corpus without labels: the plates of a
    synthetic edition, or {"images": folder of species folders, "name": for tables}.
    """
    files = _files("second_corpus", other_corpus, {"images": "images24"}, "plates")
    return load_inat_corpus(benchmark, project_path(files["images"]), name=files["name"])


def open_articles(articles: Source, cache_dir: Path) -> tuple[dict[str, str], dict[str, Page]]:
    """(species, pages): scientific → common name, and the article of each species that
    has one; of a synthetic edition, or of {"pages": a folder, or a data set of the hub,
    "species_list": iNaturalist's categories}. What was found is kept in `cache_dir`.
    """
    files = _files("articles", articles, _ARTICLES, "", "tells")
    species = read_species(project_path(files["species_list"]))
    pages = files["pages"] if ":" in files["pages"] else project_path(files["pages"])
    return species, load_species_pages(pages, species, cache_dir)


def queries_answered_by_articles(articles: Source, benchmark: Benchmark) -> frozenset[str]:
    """The queries that the articles answer, where that is known: by the list of a drawn
    edition, or by {"tells": a JSON list of questions}; else none.
    """
    files = _files("articles", articles, _ARTICLES, "", "tells")
    if not files.get("tells"):
        return frozenset()
    told = set(json.loads(project_path(files["tells"]).read_text(encoding="utf-8")))
    return frozenset(name for name, query in benchmark.queries.items() if query.text in told)


def open_webqa(webqa: Source) -> Benchmark:
    """Questions on images with captions in WebQA's layout, of a synthetic edition, or of
    {"annotations": …, "images": imgs.tsv, "name": for titles, "split": "val" or "train"}.
    """
    layout = {"annotations": "webqa/WebQA_train_val.json", "images": "webqa/imgs.tsv"}
    files = _files("webqa", webqa, layout, "{} with captions", "split")
    annotations, images = project_path(files["annotations"]), project_path(files["images"])
    split = files.get("split", "val")
    return load_webqa(annotations, images, split=split, name=files["name"])


def open_images(pictures: Source) -> SpeciesImages:
    """The images of a synthetic edition without its questions, or {"images": a folder
    of folders, "name": for titles} with "species_list" and "articles" where there are any.

    Raises `VragError` for an unknown name or key.
    """
    layout = {"images": "images", "species_list": "categories.json", "articles": "articles"}
    files = _files("image_source", pictures, layout, "{}", "species_list", "articles")
    species_list = project_path(files["species_list"]) if files.get("species_list") else None
    return SpeciesImages(
        name=files["name"],
        images=project_path(files["images"]),
        names=read_species(species_list) if species_list else {},
        species_list=species_list,
        articles=project_path(files["articles"]) if files.get("articles") else None,
    )


def _files(
    parameter: str, source: Source, layout: Mapping[str, str], title: str, *optional: str
) -> dict[str, str]:
    """Return where the files of a `parameter` are, and their name; a synthetic edition is
    generated. `layout` maps keys of a mapping to files of a synthetic edition, whose `title` has {}
    for the edition's. Raises `VragError` for an unknown name or key, and for one that is missing.
    """
    needed = [key for key in [*layout, *(["name"] if title else [])] if key not in optional]
    expected = f"expected {' or '.join(map(repr, DRAWN))}, or a mapping with {', '.join(needed)}."
    if not isinstance(source, Mapping):
        if source not in DRAWN:
            hint = did_you_mean(str(source), DRAWN)
            raise VragError(f"{parameter} is {source!r}; {expected}{hint}")
        generate_field_guide(DRAWN[source], project_path(f"data/{source}"))
        files = {key: f"data/{source}/{file}" for key, file in layout.items()}
        return {**files, "name": title.format(_TITLES[source])}
    known = [*needed, *optional]
    for key in [*source, *needed]:
        value = source.get(key)
        if key not in known:
            hint = did_you_mean(key, known)
            raise VragError(f"{parameter} has an unknown key {key!r}; {expected}{hint}")
        if not isinstance(value, str) or (key in needed and not value):
            raise VragError(f"{parameter}: {key} is {value!r}; {expected}")
    return dict(source)
