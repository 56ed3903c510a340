"""A name out of data is joined to a folder by `files.inside`, or checked by `files.leaves`
before: every other join of a name that is no literal stands in a list here.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from conftest import ROOT

from vrag_kit.errors import VragError
from vrag_kit.files import safe_join

PACKAGE = ROOT / "vrag_kit"
ROOMS = ("analysis", "benchmarks", "building", "fetching", "judging", "retrieval", "widgets")
"""They read data of others; the other rooms join names that the kit makes, or a user types."""
CHECKED = {
    "benchmarks/datasets/visual_rag.py": {"doc_id", "folder"},  # by the model `VisualRow`
    "benchmarks/datasets/crag_mm_index.py": {"row.image"},  # by the model `Entry`
    "fetching/archives.py": {"file"},  # by `escapes_folder`, and without its folder
    "fetching/extract.py": {"name"},  # by is_image_name
    "fetching/image_folder.py": {"name"},  # likewise
    "files.py": {"name"},  # `safe_join` itself
    # by `escapes_folder`; a name; the part of a name before its slash
    "retrieval/encoders/loading.py": {"base", "name", "f'{parts[0]}.json'"},
}
"""Module → names out of data that were checked before."""
OURS = {
    # hashes and numbers
    "benchmarks/datasets/chart_mrag.py": {"charts[key]"},
    "benchmarks/datasets/crag_mm.py": {"session.image_name"},
    "benchmarks/knowledge_base.py": {"f'pages-{_key(source, species)}.json'"},
    "benchmarks/datasets/mrag_bench.py": {
        "files_version([*shards, *files], 'MRAG-Bench')",
        "name",
    },
    "benchmarks/datasets/pages.py": {"images[0]"},
    "fetching/downloads.py": {"name"},
    "benchmarks/image_cache.py": {
        "f'.{name}.{os.getpid()}.part'",
        "f'{files_version(files, what)}.json'",
        "name",
    },
    "retrieval/dense.py": {"f'{key[:32]}.json.gz'"},
    # literals in the same module, or in what calls it
    "fetching/archives.py": {"folder"},
    "retrieval/encoders/checkpoint.py": {"name"},
    "fetching/sources.py": {"name"},
    # what a folder lists, or what was typed: parameters, notebooks, models
    "analysis/results.py": {"f'{name}{SUFFIX}'"},
    "building/benchmark_files.py": {"f'{folder.name}.yaml'"},
    "retrieval/compare.py": {"f'{name}.run'"},
    "retrieval/shards.py": {
        "f'shard-{hashlib.sha256(key.encode()).hexdigest()[:16]}'",
        "f'{name}-{fingerprint[:12]}'",
        "f'{encoder.name}-{encoder.fingerprint[:12]}'",
    },
}
"""Module → names that the kit makes itself, or the user names."""
DIVIDED = {
    "judging/human_labels.py": {"sizes"},
    "judging/answer_metrics.py": {"size"},
    "retrieval/encoders/dual.py": {"length"},
    "retrieval/encoders/magiclens.py": {"math.sqrt(query.shape[-1])", "math.sqrt(sizes.width)"},
    "retrieval/encoders/vista.py": {"width"},
}
"""Module → what numbers are divided by."""
_NUMBERS = {"len", "sum", "min", "max", "int", "float", "comb", "Fraction"}


def joins(source: str) -> Iterator[str]:
    """What a module joins to folders that is no literal, no constant and no path's name."""
    for node in ast.walk(ast.parse(source)):
        joined: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if not (_is_number(node.left) or _is_number(node.right)):
                joined = [node.right]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.endswith(".joinpath"):
                joined = node.args
            elif called in ("Path", "PurePosixPath", "os.path.join"):
                joined = node.args[1:]
        yield from (ast.unparse(each) for each in joined if not _is_ours(each))


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in _NUMBERS
    arithmetic = isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div)
    return arithmetic or (isinstance(node, ast.Constant) and not isinstance(node.value, str))


def _is_ours(node: ast.expr) -> bool:
    """Whether this is a literal, a constant, or the name of a path that is there."""
    constant = isinstance(node, ast.Name) and node.id.isupper()
    of_a_path = isinstance(node, ast.Attribute) and node.attr == "name"
    return constant or of_a_path or isinstance(node, ast.Constant)


def found() -> dict[str, set[str]]:
    """Module → what it joins; of those that speak of paths at all."""
    known: dict[str, set[str]] = {}
    rooms = chain.from_iterable((PACKAGE / room).rglob("*.py") for room in ROOMS)
    for file in [PACKAGE / "files.py", *sorted(rooms)]:
        source = file.read_text(encoding="utf-8")
        paths = re.search("Path|folder|import os", source)
        if paths and (names := set(joins(source))):
            known[file.relative_to(PACKAGE).as_posix()] = names
    return known


def test_a_name_out_of_data_is_joined_to_a_folder_in_one_place() -> None:
    """Another join is made by `safe_join`, or stands above with the reason why it is safe."""
    known = defaultdict[str, set[str]](set)
    for allowed in (CHECKED, OURS, DIVIDED):
        for module, names in allowed.items():
            known[module] |= names
    assert found() == known


@pytest.mark.parametrize(
    "line",
    [
        "self._file.parent / image",
        "folder / str(row['image'])",
        "folder / 'images' / row['image']",
        "Path(folder, row['image'])",
        "os.path.join(folder, name)",
        "folder.joinpath(name)",
        "folder / f'{name}.png'",
    ],
)
def test_another_join_is_noticed(line: str) -> None:
    assert list(joins(line))


@pytest.mark.parametrize("line", ["1 / n", "hits / len(found)", "root / 'a.json'", "a / FILE"])
def test_what_is_no_join_of_data_is_not(line: str) -> None:
    assert not list(joins(line))


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
