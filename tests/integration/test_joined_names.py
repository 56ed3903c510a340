"""A name out of data is joined to a folder by `files.inside`, or checked by `files.leaves`
before: every other join of a name that is no literal stands in a list here.
"""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import Path

import pytest
from conftest import ROOT

from vrag_kit.errors import VragError
from vrag_kit.files import safe_join

PACKAGE = ROOT / "vrag_kit"
ROOMS = ("analysis", "benchmarks", "building", "fetching", "judging", "retrieval", "widgets")
"""They read data of others; the other rooms join names that the kit makes, or a user types."""
ALLOWED = {
    # checked before: by the models `VisualRow` and `Entry`, `escapes_folder` or `is_image_name`
    "benchmarks/datasets/visual_rag.py": {"doc_id", "folder"},
    "benchmarks/datasets/crag_mm_index.py": {"row.image"},
    "fetching/archives.py": {"file", "folder"},
    "fetching/extract.py": {"name"},
    "fetching/image_folder.py": {"name"},
    "files.py": {"name"},  # `safe_join` itself
    "retrieval/encoders/loading.py": {"base", "name", "f'{parts[0]}.json'"},
    # hashes, numbers and literals of the kit
    "benchmarks/datasets/chart_mrag.py": {"charts[key]"},
    "benchmarks/datasets/crag_mm.py": {"session.image_name"},
    "benchmarks/knowledge_base.py": {"f'pages-{_key(source, species)}.json'"},
    "benchmarks/datasets/mrag_bench.py": {
        "files_version([*shards, *files], 'MRAG-Bench')",
        "name",
    },
    "benchmarks/datasets/pages.py": {"images[0]"},
    "benchmarks/image_cache.py": {
        "f'.{name}.{os.getpid()}.part'",
        "f'{files_version(files, what)}.json'",
        "name",
    },
    "fetching/downloads.py": {"name"},
    "fetching/sources.py": {"name"},
    "retrieval/dense.py": {"f'{key[:32]}.json.gz'"},
    "retrieval/encoders/checkpoint.py": {"name"},
    "retrieval/shards.py": {
        "f'shard-{hashlib.sha256(key.encode()).hexdigest()[:16]}'",
        "f'{name}-{fingerprint[:12]}'",
        "f'{encoder.name}-{encoder.fingerprint[:12]}'",
    },
    # what a folder lists, or a user types: parameters, notebooks, models
    "analysis/results.py": {"f'{name}{SUFFIX}'"},
    "building/benchmark_files.py": {"f'{folder.name}.yaml'"},
    "retrieval/compare.py": {"f'{name}.run'"},
    # numbers
    "judging/human_labels.py": {"sizes"},
    "judging/answer_metrics.py": {"size"},
    "retrieval/encoders/dual.py": {"length"},
    "retrieval/encoders/magiclens.py": {"math.sqrt(query.shape[-1])", "math.sqrt(sizes.width)"},
    "retrieval/encoders/vista.py": {"width"},
}
"""Module → what it joins to a folder, or divides by, and is safe."""
_NUMBERS = re.compile(r"(?:\w+\.)*(?:len|sum|min|max|int|float|comb|Fraction)\(.*\)|[\d.]+")


def joins(source: str) -> set[str]:
    """What a module joins to folders that is no literal, no constant and no path's name."""
    joined: list[ast.expr] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if not (_is_number(node.left) or _is_number(node.right)):
                joined.append(node.right)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.endswith(".joinpath"):
                joined += node.args
            elif called in ("Path", "PurePosixPath", "os.path.join"):
                joined += node.args[1:]
    return {ast.unparse(each) for each in joined if not _is_ours(each)}


def _is_number(node: ast.expr) -> bool:
    arithmetic = isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div)
    return arithmetic or bool(_NUMBERS.fullmatch(ast.unparse(node)))


def _is_ours(node: ast.expr) -> bool:
    constant = isinstance(node, ast.Name) and node.id.isupper()
    of_a_path = isinstance(node, ast.Attribute) and node.attr == "name"
    return constant or of_a_path or isinstance(node, ast.Constant)


def test_a_name_out_of_data_is_joined_to_a_folder_in_one_place() -> None:
    """Another join is made by `safe_join`, or stands above with the reason why it is safe."""
    found = {}
    files = [PACKAGE / "files.py", *chain(*((PACKAGE / room).rglob("*.py") for room in ROOMS))]
    for file in files:
        source = file.read_text(encoding="utf-8")
        if re.search("Path|folder|import os", source) and (names := joins(source)):
            found[file.relative_to(PACKAGE).as_posix()] = names
    assert found == ALLOWED


@pytest.mark.parametrize(
    ("line", "joined"),
    [
        ("folder / 'images' / row['image']", {"row['image']"}),
        ("Path(folder, str(row))", {"str(row)"}),
        ("os.path.join(folder, name)", {"name"}),
        ("folder.joinpath(f'{name}.png')", {"f'{name}.png'"}),
        ("hits / len(found) + 1 / n + (root / 'a.json') + (a / FILE)", set()),
    ],
)
def test_a_join_is_told_from_a_division(line: str, joined: set[str]) -> None:
    assert joins(line) == joined


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "..", "a\\..\\x", "a\0.png"])
def test_a_name_that_leads_outside_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(VragError, match=r"rows line 3: .* points outside .*; expected") as error:
        safe_join(tmp_path, name, "rows line 3")
    assert repr(name) in str(error.value)


def test_links_are_followed_where_the_user_made_the_folder_and_not_where_a_stranger_did(
    tmp_path: Path,
) -> None:
    """`data/inat` may be a link to another disk, and a species' folder in it, too; what a
    stranger packed may lead nowhere else.
    """
    disk, data = tmp_path / "disk", tmp_path / "data"
    disk.mkdir()
    (disk / "a.png").touch()
    data.mkdir()
    (data / "inat").symlink_to(disk)
    assert safe_join(data, "inat/a.png", "x").is_file()
    with pytest.raises(VragError, match=r"'inat/a\.png' is a link that points outside"):
        safe_join(data, "inat/a.png", "x", links=False)
    assert safe_join(data / "inat", "a.png", "x", links=False).is_file()
    (data / "b.png").touch()
    (data / "again.png").symlink_to("b.png")
    assert safe_join(data, "again.png", "x", links=False).is_file()
    assert safe_join(data, "..b.png", "x") == data / "..b.png"
