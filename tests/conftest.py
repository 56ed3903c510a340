"""What the tests stand on: the small Field Guide, and tiny retrievers with random
weights.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import shutil
import sys
from pathlib import Path

import browser
import hypothesis
import numpy as np
import pytest
import small_index
from joblib import cpu_count
from own_project import notebook
from own_project import project as empty_project
from PIL import Image
from xdist.scheduler import LoadFileScheduling

from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.synthetic import generate_field_guide
from vrag_kit.synthetic.mrag_bench import generate_mrag_bench, open_mrag_bench
from vrag_kit.types import Document
from vrag_kit.workspace import Workspace

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "vrag_kit" / "synthetic" / "weights"

LONGEST = (
    "test_run.py",
    "test_cluster.py",
    "test_answerers.py",
    "test_paper_questions.py",
    "test_goldens.py",
    "test_dry_run.py",
    "test_in_browser.py",
)
"""Files that take a minute or more: they come first, so that no process is left alone with
one of them in the end.
"""


hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")  # what is claimed is never how long it takes


def pytest_configure() -> None:
    """Each of several test processes, with its kernels, counts on its share of the cores."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cpu_count() // workers)))


@pytest.hookimpl(tryfirst=True)  # before any are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; the others keep their order."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("notebooks")
        if {"jupyter_server", "chromium"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("browser")


class ByFile(LoadFileScheduling):
    """One process runs a file, but each notebook goes where one is free."""

    def _split_scope(self, nodeid: str) -> str:
        alone = "::test_a_notebook_runs_to_its_end[" in nodeid
        return nodeid if alone else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    return ByFile(config, log)


_frozen = 0


def pytest_runtest_call() -> None:
    """Keep the garbage collector from looking at libraries again and again: the kit calls it
    after each search and model, and a test process holds a million of their objects.
    """
    global _frozen
    if len(sys.modules) > _frozen + 100:
        gc.collect()
        gc.freeze()
        _frozen = len(sys.modules)


@pytest.fixture
def at(tmp_path):
    """A workspace that keeps everything in the test's own folder."""
    return Workspace(cache_dir=tmp_path, answers_dir=tmp_path, figures_dir=tmp_path)


@pytest.fixture(scope="session")
def guide_folder():
    """The small guide, to read: the one that the notebooks read too. It is drawn once,
    by the first process that wants it, and again when the code that draws it changes.
    """
    return generate_field_guide("small", ROOT / "data" / "field-guide-small")


@pytest.fixture(scope="session")
def mrag_folder():
    """The small drawn MRAG-Bench, to read: the one that the notebooks read too."""
    return generate_mrag_bench("small", ROOT / "data" / "field-guide-mrag-bench-small")


@pytest.fixture
def project(tmp_path):
    """A project of two notebooks that write one file each, and a parameter file."""
    for name in ("params", "figures"):
        (tmp_path / name / "guide").mkdir(parents=True)
    figures = f"figures_dir = {str(tmp_path / 'figures')!r}\n"
    for name, parameters, value in (
        ("01_one", "k = 1\nshare = 0.5", "str(k)"),
        ("02_two", "source = ''", "'none'"),
    ):
        code = (
            f"from pathlib import Path\nPath(figures_dir, 'guide/{name}.csv').write_text({value})"
        )
        notebook(tmp_path / "notebooks/guide" / f"{name}.ipynb", figures + parameters, code)
    (tmp_path / "params/guide/p.yaml").write_text("k: 2\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def here(project, monkeypatch):
    """The same, as the current folder."""
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Write `mine.py` into a project, which is then the current folder."""
    yield empty_project(tmp_path, monkeypatch)
    sys.modules.pop("mine", None)


@pytest.fixture(scope="session")
def guide(guide_folder):
    return load_visual_rag(
        guide_folder / "annotations.jsonl", guide_folder / "images", name="small guide"
    )


@pytest.fixture(scope="session")
def drawn():
    """The small drawn MRAG-Bench, to read: the one that the notebooks read too."""
    return open_mrag_bench("field-guide-mrag-bench-small")


@pytest.fixture
def tree(tmp_path):
    """An image root with one iNaturalist-style species folder of four photographs,
    a.jpg to d.jpg.
    """
    folder = (
        tmp_path / "images" / "00001_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"
    )
    folder.mkdir(parents=True)
    for number, name in enumerate("abcd"):
        Image.fromarray(np.full((40, 50, 3), 40 * number + 30, np.uint8)).save(
            folder / f"{name}.jpg"
        )
    return tmp_path / "images"


@pytest.fixture
def write_annotations(tmp_path, tree):
    """Write annotation rows: a good row for Branta leucopsis changed by the given
    dicts; strings are written as they are.
    """
    folder, path = next(tree.iterdir()).name, tmp_path / "annotations.jsonl"
    good: dict[str, object] = {"question": "What color are the feet of the goose?"}
    good |= {"answer": ["black"], "sn": "Branta leucopsis"}
    good["images"] = {f"{folder}/{name}.jpg": int(name == "a") for name in "abcd"}

    def write(*changes: dict[str, object] | str) -> Path:
        with path.open("w", encoding="utf-8") as file:
            for change in changes:
                row = change if isinstance(change, str) else json.dumps({**good, **change})
                file.write(f"{row}\n")
        return path

    return write


@pytest.fixture(scope="session")
def retrievers_made(tmp_path_factory):
    """One tiny checkpoint of each family; tests that change one take a copy."""
    import tiny_retrievers as tiny

    root = tmp_path_factory.mktemp("retrievers")
    made = (tiny.clip, tiny.siglip, tiny.siglip2, tiny.qwen2_vl, tiny.bert, tiny.sentences)
    for family in (*made, tiny.open_clip):
        family(root / family.__name__)
    tiny.bert(root / "context", seed=1)
    tiny.lora(root / "lora", root / "qwen2_vl")
    tiny.lens(root / "lens")
    return root


@pytest.fixture
def copy_retriever(retrievers_made, tmp_path):
    """Copy a family's tiny checkpoint, to change it."""
    return lambda family: Path(
        shutil.copytree(retrievers_made / family, tmp_path / "copies" / family)
    )


@pytest.fixture(scope="session")
def checkpoint_of(tmp_path_factory):
    """A generator family's tiny checkpoint, to read: it is built once."""
    from tiny_models import build

    folder = tmp_path_factory.mktemp("models")
    return functools.cache(lambda family: build(family, folder / family))


@pytest.fixture(scope="session")
def documents(tmp_path_factory):
    """Four pictures of different shapes, each with a text."""
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    texts = ["a white belly", "The goose has black feet.", "hindwings of the moth?", "a"]
    found = []
    for text, size in zip(texts, [(60, 40), (40, 60), (91, 33), (64, 64)], strict=True):
        coarse = rng.integers(0, 255, (size[1] // 4, size[0] // 4, 3), dtype=np.uint8)
        path = folder / f"{len(found)}.png"
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(path)
        found.append(Document(doc_id=f"d{len(found)}", image=ImageFile(path), text=text))
    return found


@pytest.fixture(scope="session")
def small(documents, tmp_path_factory):
    """A small index of pictures and one of pages, with tiny encoders."""

    return small_index.build(documents, tmp_path_factory.mktemp("small-index"))


@pytest.fixture(scope="session")
def jupyter_server(tmp_path_factory):
    """JupyterLab over the tests' temporary folders; started once."""
    if reason := browser.missing():
        pytest.skip(reason)
    with browser.serve(
        tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("jupyter")
    ) as server:
        yield server


@pytest.fixture(scope="module")
def chromium():
    """A browser for the tests of a file."""
    if reason := browser.missing():
        pytest.skip(reason)
    with browser.chromium() as running:
        yield running


@pytest.fixture
def lab(jupyter_server, chromium, tmp_path):
    """A page of JupyterLab in the browser; its notebook lies in the test's `tmp_path`.

    `browser.py` tells how to use it.
    """
    with browser.lab_page(jupyter_server, chromium, tmp_path) as page:
        yield page
