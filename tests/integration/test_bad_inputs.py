"""Bad input is refused, and the message names the place, what was found and what is expected.

`bad_inputs.csv` holds a case a row: what is written (`made`), the tokens of the message and the
exit code, 2 refused or 1 missing. What needs a server or code has the test that holds it, in
`held_by`. The wording is free; rows are added, never removed.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from chart_rows import ROWS as CHARTS
from chart_rows import write_charts
from conftest import ROOT
from crag_rows import session
from mrag_rows import four_questions, mrag_row, write_mrag_rows
from own_project import ASKS, CLUES, DECLARED, FINDS, OPENS, SEARCHING, notebook
from page_rows import LABELS, PAGES, QUERIES, write_pages
from tiny_retrievers import entry

from vrag_kit import benchmarks
from vrag_kit.analysis import load_results
from vrag_kit.benchmarks.articles import read_articles
from vrag_kit.benchmarks.datasets import crag_mm_index
from vrag_kit.benchmarks.datasets.chart_mrag import read_sentences
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.sources import read_document_texts
from vrag_kit.building.annotations import read_votes
from vrag_kit.building.questions import read_questions
from vrag_kit.building.species import SpeciesFolder, read_species_folders
from vrag_kit.claims.human_labels import read_annotator_labels
from vrag_kit.errors import VragError
from vrag_kit.generation import read_prompts, render
from vrag_kit.judging import read_human_labels
from vrag_kit.open import open_articles, open_benchmark, open_images, open_inat_corpus, open_webqa
from vrag_kit.papers.mrag_bench.settings import no_rag
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import load_encoder
from vrag_kit.runner import cli
from vrag_kit.types import Context, Document, Query
from vrag_kit.widgets import multiple_choice_panel

with (ROOT / "tests" / "bad_inputs.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
RUN = [row for row in ROWS if not row["held_by"]]

FETCH = "data fetch visual-rag --annotations one.jsonl --archive a.tar.gz --to images"
CLAIMS = "claims claims.json --extractor one@http://127.0.0.1:9/v1"
FILES: dict[str, tuple[str, str]] = {
    "parameter file": ("p.yaml", "run p.yaml"),
    "own module": ("mine.py", "run --dry-run p.yaml"),
    "TREC run": ("x.run", "metrics labels x.run"),
    "TREC labels": ("labels", "metrics labels x.run"),
    "claims file": ("claims.json", "claims claims.json"),
    "archive": ("a.tar.gz", FETCH),
}
"""Kind → the file that a case is the content of, and the command that reads it."""
CHANGES: dict[str, tuple[str, str]] = {
    "checked claims": ("checked.json", "claims checked.json"),
    "claims to check": ("claims.json", CLAIMS),
    "image outside the folder": ("claims.json", CLAIMS),
}
"""Kind → the file whose one result a case is a change of, and the command that reads it."""

FOUR = four_questions()
LILY = SpeciesFolder(Path(), "lily", "lily", "", (), ("lily/a.jpg",))


def rendered(path: Path) -> object:
    """The prompt of the setting "mine" in a prompt file, with one passage."""
    prompts = read_prompts(path, PROMPTS)
    template = prompts.template_for(Context(query_id="q", setting="mine", k=1))
    passage = Document(doc_id="d", text="Some moths are red.")
    return render(template, Query(query_id="q", text="Which?"), [passage])


def mrag_bench(path: Path) -> object:
    """MRAG-Bench of one row, changed."""
    row = mrag_row(0) | json.loads(path.read_text(encoding="utf-8"))
    return benchmarks.load_mrag_bench(
        write_mrag_rows(path.parent / "rows", [[row]]), cache_dir=path.parent
    )


def crag_mm(path: Path) -> object:
    """CRAG-MM of one session, changed, with labels as names."""
    row = session("s") | json.loads(path.read_text(encoding="utf-8"))
    shard = path.parent / "rows" / "validation-00000-of-00001.parquet"
    shard.parent.mkdir()
    pq.write_table(pa.Table.from_pylist([row]), shard)
    return benchmarks.load_crag_mm(shard.parent)


def pages(path: Path) -> object:
    """Two questions over three pages; the last row of each named part is changed."""
    changes = json.loads(path.read_text(encoding="utf-8"))
    good = {"pages": PAGES, "queries": QUERIES, "labels": LABELS}
    parts = {name: [*rows[:-1], rows[-1] | changes.get(name, {})] for name, rows in good.items()}
    folder = write_pages(path.parent / "rows", **parts)
    return benchmarks.load_page_benchmark(folder, cache_dir=path.parent)


def charts(path: Path) -> object:
    """Charts and sentences; the last row is changed."""
    row = CHARTS[-1] | json.loads(path.read_text(encoding="utf-8"))
    places = write_charts(path.parent / "charts", [*CHARTS[:-1], row])
    return benchmarks.load_chart_mrag(*places, cache_dir=path.parent)


def webqa(path: Path) -> object:
    """One text question of WebQA, changed."""
    row = {"Q": '"Why?"', "A": ['"So."'], "split": "val", "img_posFacts": [], "img_negFacts": []}
    row |= {"txt_posFacts": [{"fact": "So it is."}], "txt_negFacts": []}
    row |= json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({"a1": row}), encoding="utf-8")
    return benchmarks.load_webqa(path, None, questions="text")


def encoder(path: Path) -> object:
    """A model that is named, or the tiny one of a family, with these options."""
    told = json.loads(path.read_text(encoding="utf-8"))
    return load_encoder(told if "model" in told else entry(path.parent / "tiny", **told))


def species_folders(path: Path) -> object:
    """Folders of species with empty files of these names."""
    root = path.parent / "images"
    for name in json.loads(path.read_text(encoding="utf-8")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return read_species_folders(root)


OPENED: dict[str, Callable[..., object]] = {
    "data": open_benchmark,
    "second_corpus": lambda source: open_inat_corpus(source, FOUR),
    "webqa": open_webqa,
    "articles": lambda source: open_articles(source, Path("runs")),
    "image_source": open_images,
}
"""Parameter → what opens its value."""


def data_entry(path: Path) -> object:
    """The value of one parameter that says where data are."""
    ((parameter, source),) = json.loads(path.read_text(encoding="utf-8")).items()
    return OPENED[parameter](source)


LOADERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "labels file": ("labels.csv", read_human_labels),
    "claim labels": ("labels.csv", lambda at: read_annotator_labels(at, only="me")),
    "questions file": ("q.csv", lambda at: read_questions(at, [LILY])),
    "choices": ("ada.csv", lambda at: multiple_choice_panel(FOUR, no_rag(FOUR), at, "Ada")),
    "annotation file": ("ada.jsonl", read_votes),
    "passages": ("passages.csv", lambda at: benchmarks.load_mrag_texts(FOUR, at.parent)),
    "true passages": ("ground_truth.csv", lambda at: benchmarks.load_mrag_texts(FOUR, at.parent)),
    "MRAG-Bench row": ("row.json", mrag_bench),
    "CRAG-MM row": ("row.json", crag_mm),
    "pages": ("row.json", pages),
    "chart row": ("row.json", charts),
    "sentences": ("text_corpus.jsonl", read_sentences),
    "WebQA row": ("webqa.json", webqa),
    "WebQA file": ("webqa.json", lambda at: benchmarks.load_webqa(at, None, questions="text")),
    "texts of pages": ("ocr.jsonl", lambda at: read_document_texts(at, ["deck_a.jpg"], "Mine")),
    "image": ("moth.png", lambda at: ImageFile(at).open()),
    "article": ("runs/moth.txt", lambda at: [*read_articles(at.parent)[1]]),
    "species list": ("categories.json", benchmarks.read_species),
    "species folders": ("names.json", species_folders),
    "data entry": ("entry.json", data_entry),
    "encoder entry": ("entry.json", encoder),
    "suite entry": ("s.json", lambda at: benchmarks.load_collection(json.loads(at.read_text()))),
    "marks": ("marks.jsonl", crag_mm_index.read_annotations),
    "image index": ("entries.jsonl", lambda at: crag_mm_index.read_image_index(at.parent)),
    "web index": ("pages.jsonl", lambda at: crag_mm_index.read_web_index(at.parent)),
    "results table": ("results/01_a.csv", lambda at: load_results(at.parent)),
    "template": ("mine.yaml", rendered),
}
"""Kind → the file that a case is the content of, and what reads it, where no command does."""


SMALL = (91, 92)
"""Two small notebooks, of which a dry run takes a moment: one asks, one searches and asks."""


@pytest.fixture(scope="session")
def books(tmp_path_factory):
    """The kit's notebooks, and the small ones."""
    folder = tmp_path_factory.mktemp("books") / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    asks, finds = (folder / "mine" / f"{number}_small.ipynb" for number in SMALL)
    checks = "from vrag_kit.claims import load_checker\nload_checker(checker, path(answers_dir))"
    notebook(asks, f"{DECLARED}\nchecker = 'field-guide-vlm-few'", OPENS, CLUES, ASKS, checks)
    notebook(finds, f"{DECLARED}\n{SEARCHING}", OPENS, FINDS, ASKS)
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch, guide_folder, books, retrievers_made):
    """The current folder: a project with good input of each kind."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    project = Path(shutil.copytree(ROOT / "tests" / "data" / "good_inputs", tmp_path / "project"))
    for place in (ROOT / "data", ROOT / "params", books):
        (project / place.name).symlink_to(place)
    (project / "tiny").symlink_to(retrievers_made)
    for name in ("results", "runs"):
        (project / name).mkdir()
    rows = (guide_folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    (project / "three.jsonl").write_text("\n".join(rows[:3]), encoding="utf-8")
    monkeypatch.chdir(project)
    yield project
    sys.modules.pop("mine", None)


def raw(made: str) -> bytes:
    """Bytes, with escapes as in Python."""
    return made.encode("latin-1").decode("unicode_escape").encode("latin-1")


def parameters(made: str, exit_code: str) -> str:
    """Good parameters changed, or these alone where they name notebooks. Those that are
    refused are refused before a notebook begins, which here none can.
    """
    path = Path("p.yaml")
    good, changes = yaml.safe_load(path.read_text(encoding="utf-8")), yaml.safe_load(made)
    if exit_code == "1":
        good["notebooks"] = [SMALL[0]]
    alone = "notebooks" in changes and changes["notebooks"][0] not in SMALL
    whole = changes if alone else good | changes
    path.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    if exit_code == "1":
        return "run --dry-run p.yaml"
    Path("runs/p").write_text("in the way", encoding="utf-8")
    return "run p.yaml"


def command(row: dict[str, str], made: str, request: pytest.FixtureRequest) -> str:
    """Writes the case; the command that reads it."""
    kind = row["kind"]
    if kind == "command":
        return made
    if kind in FILES:
        name, told = FILES[kind]
        Path(name).write_bytes(raw(made))
        return parameters("models: ['mine:Model']", "1") if name == "mine.py" else told
    if kind in CHANGES:
        name, told = CHANGES[kind]
        (good,) = json.loads(Path(name).read_text(encoding="utf-8"))["results"]
        Path(name).write_text(json.dumps({"results": [good | json.loads(made)]}), encoding="utf-8")
        return told
    if kind in ("annotation", "annotation line", "hostile name"):  # behind a good line
        line = raw(made).decode() if kind == "annotation line" else json.loads(made)
        path = request.getfixturevalue("write_annotations")({}, line)
        return f"data check {path} {path.parent / 'images'}"
    return parameters(made, row["exit"])


@pytest.mark.slow
@pytest.mark.parametrize("row", RUN, ids=[f"{row['kind']}: {row['case']}" for row in RUN])
def test_bad_input_is_refused_and_the_message_names_what_is_wrong(
    row, folder, request, monkeypatch, capsys
):
    made = re.sub(r"(.)\{(\d{3,})\}", lambda many: many[1] * int(many[2]), row["made"])
    code, refused = 0, ""
    try:
        if row["kind"] in LOADERS:
            name, load = LOADERS[row["kind"]]
            (folder / name).write_bytes(raw(made))
            load(folder / name)
        else:
            told = command(row, made, request)
            monkeypatch.setattr(sys, "argv", ["vrag", *told.split()])
            cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    except VragError as error:
        code, refused = 2, str(error)
    said = " ".join("".join([*capsys.readouterr(), refused]).split())
    lacking = [token for token in row["must_name"].split(" | ") if token not in said]
    assert (code, lacking) == (int(row["exit"]), []), said
    assert "Traceback" not in said


def test_what_needs_a_server_or_code_is_held_by_a_test_that_is_there():
    for name in sorted({row["held_by"] for row in ROWS} - {""}):
        file, _, function = name.partition("::")
        code = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^ *def {function}\(", code, re.MULTILINE), name


def test_every_kind_has_two_cases_and_no_case_stands_twice():
    assert min(Counter(row["kind"] for row in RUN).values()) >= 2
    assert len({(row["kind"], row["case"]) for row in ROWS}) == len(ROWS)
