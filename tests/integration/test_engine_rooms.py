"""The loaders' rooms know no data set: its names and fields stand in `benchmarks/datasets` alone,
and where each data set is fetched and checked. No engine room knows the synthetic data's words.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

from conftest import ROOT

from vrag_kit.benchmarks.rows import Row
from vrag_kit.synthetic.crag_mm import entities

PACKAGE = ROOT / "vrag_kit"
DATASETS = PACKAGE / "benchmarks" / "datasets"
NAMES = re.compile(
    r"web_?qa|mrag|crag|visual.?rag|visrag|vidore|chart|inat\b|inaturalist|imgs\.tsv", re.IGNORECASE
)
ROOMS = ("retrieval", "generation", "judging", "claims", "analysis", "plotting", "widgets")
"""Engine rooms beside `benchmarks` and `fetching`."""
GENERIC = """
A B C D answer doc_id document id image images index name page_name query query_id question source
split text title url where
"""
"""Fields of a data set whose names any data set may have."""
ALLOWED = {
    "benchmarks/__init__.py": {"chart", "crag", "mrag", "visual_rag", "webqa"},  # exports
    "benchmarks/articles.py": {"visual-rag"},  # the paper whose procedure it follows
    "benchmarks/knowledge_base.py": {"visual-rag", "inaturalist"},  # likewise, and its species
    "fetching/__init__.py": {"visual_rag"},
    "fetching/sources.py": {
        "imgs.tsv",
        "visual-rag",
        "chart",
        "visrag",
        "webqa",
        "crag",
        "visual_rag",
        "mrag",
    },
    "fetching/validate.py": {"chart", "crag", "mrag", "visual-rag", "visual_rag", "webqa"},
}
"""Module → the names of data sets in it."""


def engine_modules(*others: str) -> list[Path]:
    """The modules of the loaders' rooms, and of others."""
    rooms = ("benchmarks", "fetching", *others)
    return [path for room in rooms for path in (PACKAGE / room).glob("*.py")]


def fields_of_data_sets() -> set[str]:
    """The fields of all row models in `datasets`."""
    found: set[str] = set()
    for path in DATASETS.glob("*.py"):
        module = import_module(f"vrag_kit.benchmarks.datasets.{path.stem}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Row):
                found |= set(value.model_fields)
    return found - set(GENERIC.split())


def test_names_of_data_sets_stand_only_where_they_are_fetched_and_checked() -> None:
    found = {}
    for path in engine_modules():
        if names := {name.lower() for name in NAMES.findall(path.read_text(encoding="utf-8"))}:
            found[path.relative_to(PACKAGE).as_posix()] = names
    assert found == ALLOWED


def test_no_field_of_a_data_set_is_read_outside_its_module() -> None:
    fields = fields_of_data_sets()
    assert {"gt_keypoints", "img_posFacts", "egocentric", "sn"} & fields
    for path in engine_modules():
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        constants = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert not constants & fields, (path.name, constants & fields)


def test_no_word_of_the_synthetic_conversations_stands_in_an_engine_room() -> None:
    lists = (entities.GENERA, entities.EPITHETS, entities.FAMILIES, entities.DESCRIBERS)
    names = {name.lower() for each in lists for name in each}
    names |= {name.lower() for name in (*entities.REGIONS, *entities.CAPITALS)}
    for path in engine_modules(*ROOMS):
        text = path.read_text(encoding="utf-8").lower()
        assert not names.intersection(re.findall(r"[a-z]+", text)), path
        assert not re.search(r"\bthis (?:moth|bird|fish|flower|lizard|mushroom)\b", text), path
