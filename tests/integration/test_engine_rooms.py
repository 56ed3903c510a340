"""The loaders' rooms know no data set: its names stand in `benchmarks/datasets` alone, and where
each data set is fetched and checked. No engine room knows the synthetic data's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conftest import ROOT

from vrag_kit.synthetic.crag_mm import entities

PACKAGE = ROOT / "vrag_kit"
LOADING = ("benchmarks", "fetching")
ENGINE = ("retrieval", "generation", "judging", "claims", "analysis", "plotting", "widgets")
NAMES = re.compile(
    r"web_?qa|mrag|crag|visual.?rag|visrag|vidore|chart|inat\b|inaturalist|imgs\.tsv", re.IGNORECASE
)
ALLOWED = {
    "benchmarks/__init__.py": "chart crag mrag visual_rag webqa",  # exports
    "benchmarks/articles.py": "visual-rag",  # the paper whose procedure it follows
    "benchmarks/knowledge_base.py": "visual-rag inaturalist",  # likewise, and its species
    "fetching/__init__.py": "visual_rag",
    "fetching/sources.py": "imgs.tsv visual-rag chart visrag webqa crag visual_rag mrag",
    "fetching/validate.py": "chart crag mrag visual-rag visual_rag webqa",
}
"""Module → the names of data sets in it."""


def sources(*rooms: str) -> Iterator[tuple[str, str]]:
    """(module, its source in lower case) of the modules at the top of these rooms."""
    for room in rooms:
        for path in sorted((PACKAGE / room).glob("*.py")):
            yield path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8").lower()


def test_names_of_data_sets_stand_only_where_they_are_fetched_and_checked() -> None:
    found = {module: set(NAMES.findall(source)) for module, source in sources(*LOADING)}
    allowed = {module: set(names.split()) for module, names in ALLOWED.items()}
    assert {module: names for module, names in found.items() if names} == allowed


def test_no_word_of_the_synthetic_conversations_stands_in_an_engine_room() -> None:
    lists = (entities.GENERA, entities.EPITHETS, entities.FAMILIES, entities.DESCRIBERS)
    names = {name.lower() for each in lists for name in each}
    names |= {name.lower() for name in (*entities.REGIONS, *entities.CAPITALS)}
    for module, source in sources(*LOADING, *ENGINE):
        assert not names.intersection(re.findall(r"[a-z]+", source)), module
        assert not re.search(r"\bthis (?:moth|bird|fish|flower|lizard|mushroom)\b", source), module
