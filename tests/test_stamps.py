"""A guide is drawn again when code that decides its bytes has changed, and only then."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from vrag_kit.synthetic.generator_version import generator_version, imported_files, source_hash

FIRST = "from __future__ import annotations\n"
GUIDE = ROOT / "vrag_kit" / "synthetic"
DRAWING = {
    "guide": ("page_drawing",),
    "plates": ("plate_drawing",),
    "texts": ("species_texts", "captions", "page_drawing"),
    "mrag": tuple(f"mrag_bench/{name}" for name in ("topic_drawing", "edition", "rows", "texts")),
    "suite": ("mrag_suite/data_sets", "mrag_suite/ground_truth", "mrag_suite/species_facts"),
    "worn": ("crag_mm/edition", "crag_mm/indexes", "crag_mm/rows"),
}


def stamps(folder: Path) -> dict[str, str]:
    return {name: source_hash(folder, modules) for name, modules in DRAWING.items()}


@pytest.mark.slow
def test_the_stamps_of_the_kit_are_those_of_its_source() -> None:
    assert {name: generator_version(*modules) for name, modules in DRAWING.items()} == stamps(GUIDE)
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in stamps(GUIDE).values())


CHANGES = [
    ("shapes.py", FIRST, f"{FIRST}\nX = 1", set(DRAWING)),
    ("organisms/bird.py", '"""', '"""Another word. ', set()),
    ("views.py", "import numpy as np\n", "# of arrays\nimport  numpy as np\n", set()),
    ("guide.py", "cannot be drawn there", "cannot be written there", set()),
    ("generate.py", "cannot be drawn there", "cannot be written there", set()),
    ("crag_mm/opening.py", FIRST, f"{FIRST}\nX = 1", set()),
    ("page_drawing.py", "_QUALITY = 88", "_QUALITY = 89", {"guide", "texts"}),
    ("plate_drawing.py", "quality=88", "quality=89", {"plates", "texts"}),
    ("species_texts.py", "indent=1", "indent=2", {"texts"}),
    ("mrag_bench/topic_drawing.py", "N_RETRIEVED = 5", "N_RETRIEVED = 6", {"mrag"}),
    ("mrag_bench/passages.py", FIRST, f"{FIRST}\nX = 1", {"mrag"}),
    ("mrag_suite/visrag_writer.py", FIRST, f"{FIRST}\nX = 1", {"suite"}),
    ("crag_mm/web_pages.py", FIRST, f"{FIRST}\nX = 1", {"worn"}),
]
"""Where text of a module is changed, from what to what, and what is then drawn again."""


@pytest.mark.slow
def test_only_what_a_change_can_alter_is_drawn_again(tmp_path: Path) -> None:
    for file in GUIDE.rglob("*.py"):
        (tmp_path / file.relative_to(GUIDE)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / file.relative_to(GUIDE))
    before = stamps(tmp_path)
    for place, old, new, drawn_again in CHANGES:
        file = tmp_path / place
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        found = {name for name, each in stamps(tmp_path).items() if each != before[name]}
        assert found == drawn_again, place
        file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("modules", DRAWING.values(), ids=DRAWING)
def test_no_module_that_is_imported_is_left_out(modules: tuple[str, ...]) -> None:
    files = imported_files(GUIDE, modules)
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
                "vrag_kit.synthetic"
            ):
                module = GUIDE.joinpath(*str(node.module).split(".")[2:])
                places = [module.with_suffix(".py"), module / "__init__.py"]
                places += [module / f"{each.name}.py" for each in node.names]
                assert set(places) & set(files), node.module
            elif isinstance(node, ast.Import):
                assert not any("vrag_kit.synthetic" in each.name for each in node.names)
    assert not {"guide.py", "generate.py"} & {file.name for file in files}
