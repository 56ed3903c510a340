"""Runs: what is done is skipped, a failure stops only itself and is named, nothing lives on; what a
finished run is known by. The report is one page with every table and figure, that loads nothing,
runs nothing, and says what is missing, failed or old.

One run of nine small notebooks serves most of these tests.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import factories
import psutil
import pytest
from bs4 import BeautifulSoup
from commands import P, running, said, until, vrag
from conftest import ROOT
from factories import judged_arms
from joblib import cpu_count
from markupsafe import escape
from own_project import ASKING_BOOK, notebook, small_data, small_project
from strange_server import StrangeServer

from vrag_kit.errors import VragError
from vrag_kit.papers.visual_rag import check_statements
from vrag_kit.papers.visual_rag.published import EDITIONS
from vrag_kit.runner.job import LocalPool, run_lock
from vrag_kit.runner.plan import read_plan
from vrag_kit.runner.report import write_report
from vrag_kit.runner.run import KERNEL, is_finished, job_limits
from vrag_kit.runner.stamp import custom_files, run_fingerprint
from vrag_kit.workspace import Workspace

FILES = (P, "params/other/p.yaml", "params/guide/q.yaml")
FIRST = """import os, pathlib, subprocess, sys, time
pathlib.Path(figures_dir, 'guide/01_one.csv').write_text(str(k))
print('k is', k, share, prompts, hardware, web_search)
print('threads', os.environ.get('OMP_NUM_THREADS'))
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
print('child', child.pid)"""
MAPPINGS = (
    "hardware = {'device': 'cpu', 'batch_size': 32}\nweb_search = {'image_k': 30, 'web_k': 50}"
)
FAILS = [
    *("# What fails", "print('before')", "## Here"),
    *("# NBVAL_CHECK_OUTPUT\n\nratio = 1 / (k - 2)\nprint(1)", "## Nothing that holds."),
]
SOURCE = """from pathlib import Path
Path(figures_dir, 'guide/02_two.csv').write_text(Path(source).read_text())"""
KILL = "import os, signal, time\nos.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(5)"
MEETS = """import pathlib, time
pathlib.Path("here-is-{}").touch()
deadline = time.monotonic() + 60
while not pathlib.Path("here-is-{}").exists() and time.monotonic() < deadline:
    time.sleep(0.05)
print("met:", time.monotonic() < deadline)"""
OTHER = "pathlib.Path(figures_dir, 'other/01_one.csv').write_text(str(k))"
ALONE = """import pathlib, time
place = pathlib.Path("at-work")
place.touch(exist_ok=False)
time.sleep(0.5)
place.unlink()
pathlib.Path(figures_dir, "guide/08_twice.csv").write_text(str(k))"""
GIVEN = """k: 2
share: 1
prompts: [b, c]
hardware: {device: cpu, batch_size: 2}
web_search: {image_k: 30, web_k: 5}
source: rows.txt
webqa: {name: many, annotations: none.json, images: imgs.tsv}
"""


SHOWN = [
    "# What it asks (Table 1)\n\nWhy: `p_holm`, see [the paper](https://example.org/x).",
    "import sys\nimport pandas as pd\nimport ipywidgets\nfrom vrag_kit.plotting import style_table",
    "sys.stdout.write('embedding: 3 of 9\\n'); sys.stderr.write('a warning\\n');",
    "## A table\n\nOf $x_1^2$ images.",
    "print(k, 'images')",
    "pd.DataFrame({'answer': ['<script>alert(2)</script>', 'red'], 'value': [1.5, -2.0]})",
    "style_table(pd.DataFrame({'answer': ['<img src=http://x.org/x.png onerror=alert(4)>']}))",
    "## A figure",
    "from vrag_kit.plotting.style import new_figure\nnew_figure(1, 2, height=2)[0]",
    "ipywidgets.IntSlider()",
    "## What to notice\n\n* A thing.",
]


@dataclass(frozen=True)
class Ran:
    """A project after a run, and what the run has printed."""

    place: Path
    status: int
    said: str

    def result(self, name: str) -> str:
        """Of a notebook the line of the summary."""
        return next(line for line in self.said.splitlines() if line.startswith(f"{name} "))

    def file(self, name: str) -> str:
        return (self.place / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A run of two notebooks at once, in two folders, for three parameter files."""
    place = tmp_path_factory.mktemp("project")
    for folder in ("guide", "other"):
        (place / "params" / folder).mkdir(parents=True)
        (place / "figures" / folder).mkdir(parents=True)
    (place / "rows.txt").write_text("old", encoding="utf-8")
    with (place / "imgs.tsv").open("wb") as file:
        file.truncate(200 * 2**30)  # of which no byte is on the disk
    guide, k = place / "notebooks" / "guide", "figures_dir = 'figures'\nk = 1"
    whole = f"{k}\nshare = 0.5\nprompts = ['a']\n{MAPPINGS}"
    notebook(guide / "01_one.ipynb", whole, FIRST)
    notebook(guide / "02_two.ipynb", f"{k}\nsource = ''\nwebqa = ''", SOURCE)
    notebook(guide / "03_fails.ipynb", k, *FAILS)
    notebook(guide / "04_dies.ipynb", k, "# What dies", KILL, "## Nothing that lives.")
    notebook(guide / "08_twice.ipynb", k, ALONE)
    notebook(guide / "09_last.ipynb", k, MEETS.format("last", "next"))
    notebook(guide / "10_shown.ipynb", k, *SHOWN)
    notebook(place / "notebooks/other/01_one.ipynb", k, MEETS.format("next", "last"), OTHER)
    for path, values in zip(FILES, (GIVEN, "k: 5", "notebooks: [8]\nk: 7"), strict=True):
        (place / path).write_text(values, encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    done = vrag(place, "run", *FILES, "--jobs", "2", env=env)
    assert "01_one" in done.stdout, done.stderr
    return Ran(place, done.returncode, done.stdout)


@pytest.mark.slow
def test_notebooks_get_their_own_parameters_half_the_cores_and_a_log_that_tells_when(ran):
    assert ran.file("figures/guide/01_one.csv") == "2"
    assert ran.file("figures/guide/02_two.csv") == "old"
    mappings = "{'device': 'cpu', 'batch_size': 2} {'image_k': 30, 'web_k': 5}"
    assert f"[guide/01_one] k is 2 1 ['b', 'c'] {mappings}" in ran.said  # 1 fits a fraction
    assert f"[guide/01_one] threads {max(1, cpu_count() // 2)}\n" in ran.said
    log = ran.file("runs/guide/p/guide/01_one.log")
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ threads", log, re.MULTILINE), log
    assert not psutil.pid_exists(int(re.search(r"child (\d+)", ran.said)[1]))  # type: ignore[index]


@pytest.mark.slow
def test_several_files_run_at_once_and_a_notebook_of_two_files_for_one_after_the_other(ran):
    assert ran.file("figures/other/01_one.csv") == "5"
    for folder in ("guide", "other"):
        copies = ran.place / "runs" / folder / "p" / folder
        assert {file.suffix for file in copies.glob("01_one.*")} >= {".ipynb", ".log", ".json"}
    assert ran.said.count("met: True") == 2  # the last of a file, and the first of the next
    assert ran.said.count("[guide/08_twice] done in") == 2
    assert ran.file("figures/guide/08_twice.csv") == "7"


@pytest.mark.slow
def test_a_failing_cell_is_named_and_the_other_notebooks_still_run(ran):
    assert ran.status == 1
    failed = ran.result("guide/03_fails")
    assert failed.split()[1] == "failed"
    assert "cell 5 `ratio = 1 / (k - 2)`: ZeroDivisionError" in failed
    assert "runs/guide/p/guide/03_fails.log" in failed.partition("; see ")[2]
    assert "cell 3 `import os, signal, time`: the kernel died; see " in ran.result("guide/04_dies")
    assert ran.result("guide/09_last").split()[1] == "done"


@pytest.fixture(scope="module")
def page(ran):
    """The report of that run, to read."""
    with contextlib.chdir(ran.place):
        return write_report([Path(P)])[0].read_text(encoding="utf-8")


def article(html: str, stem: str) -> str:
    return html.split(f'<article id="guide/p/{stem}">')[1].split("</article>")[0]


@pytest.mark.slow
def test_the_page_loads_nothing_and_runs_nothing(page):
    active = {"script", "link", "iframe", "object", "embed", "base", "svg", "form"}
    tags = BeautifulSoup(page, "html.parser").find_all(True)
    assert not active & {tag.name for tag in tags}
    for tag in tags:
        assert not [name for name in tag.attrs if name.startswith("on") or name == "srcset"], tag
        assert tag.get("src", "data:image/").startswith("data:image/")
        assert tag.get("href", "#").startswith(("#", "https://example.org"))
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page
    for text in ("<script>alert(2)</script>", "onerror=alert(4)>"):
        assert escape(text) in page


@pytest.mark.slow
def test_text_tables_and_figures_stand_in_the_order_of_the_notebook(page):
    body = article(page, "guide/10_shown").split("code of this notebook")[0]
    marks = [
        ">What it asks (Table 1)</h2>",
        "<code>p_holm</code>",
        ">A table</h3>",
        "2 images",
        "&lt;script&gt;alert(2)",
        ">A figure</h3>",
        "data:image/png",
        "<li>A thing.</li>",
    ]
    places = [body.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "embedding: 3 of 9" not in body
    assert "a warning" not in body
    (image,) = BeautifulSoup(page, "html.parser").find_all("img")
    assert image["alt"] == "A figure"


@pytest.mark.slow
def test_a_failure_is_shown_where_it_happened_and_nothing_below_it(page):
    states = re.findall(r'<td class="state [^"]*">([^<]*)<', page)
    assert states[2:4] == ["failed: ZeroDivisionError: division by zero", "failed: the kernel died"]
    body = article(page, "guide/03_fails")
    assert "before" in body.split("Traceback")[0]
    assert "\x1b" not in body
    assert "Nothing that" not in page  # what the notebooks conclude


@pytest.mark.slow
def test_several_files_are_reported_on_one_page(ran, monkeypatch):
    monkeypatch.chdir(ran.place)
    Path("params/guide/r.yaml").write_text("k: 9\n", encoding="utf-8")
    status, told = said("report", "params/guide/r.yaml", P)
    assert (status, "guide/02_two: done\nguide/03_fails: failed: Zero" in told) == (0, True)
    assert "guide/01_one: not run with this parameter file" in told
    assert told.endswith("the report is in runs/report.html\n")
    status, told = said("report", "params/guide/r.yaml")
    assert (status, "`vrag run params/guide/r.yaml`" in told) == (2, True)
    assert said("report", P, "--to", "sent/page.html")[0] == 0
    assert Path("sent/page.html").is_file()


def test_what_the_paper_says_stands_first_where_results_can_tell(here):
    for place in ("notebooks", "params"):
        (here / place / "guide").rename(here / place / "visual_rag")
    shutil.copytree("notebooks", "runs/visual_rag/p")  # as if they were executed
    judged = judged_arms({("own", "zero_shot", 0): [0.0] * 30, ("own", "gt_clue", 1): [1.0] * 30})
    data = factories.benchmark(name="Guide", blob=next(iter(EDITIONS)))
    check_statements("03", judged, data, Workspace(figures_dir=here / "figures"))
    written, _ = write_report([Path("params/visual_rag/p.yaml")])
    head = written.read_text(encoding="utf-8").split('<nav id="contents"')[0]
    assert head.count("What the paper says, on these results") == 1  # for both notebooks
    row = r"<tr><td>(.*?)</td>.*?>([^<]+)</td><td>(.*?)</td>"
    ((claim, verdict, numbers),) = re.findall(row, head)
    assert "<td>Guide (Visual-RAG v1, first upload)</td>" in head
    assert claim.startswith("a clue lifts every model")
    assert (verdict, numbers[:13]) == ("supported", "own: 100.00 [")


DONE = {"01_one", "02_two", "09_last"}


def unfinished() -> set[str]:
    """What a run would run again, of what ended well."""
    return {task.notebook.stem for task in read_plan(Path(P)).tasks if not is_finished(task)} & DONE


@pytest.mark.slow
def test_the_last_run_of_each_notebook_is_listed(ran):
    (ran.place / "runs/other/p/other/01_one.ipynb").unlink()
    listed = vrag(ran.place, "list", *FILES[:2]).stdout.splitlines()
    states = {line.split()[0]: line for line in listed}
    assert re.fullmatch(
        r"guide/02_two +done, \d{4}-\d\d-\d\d \d\d:\d\d, 0\.\d min", states["guide/02_two"]
    )
    assert "failed" in states["guide/03_fails"]
    assert states["other/01_one"].endswith("not run")


@pytest.mark.slow
def test_a_notebook_runs_again_when_its_figure_its_data_or_its_copy_is_not_as_it_was(
    ran, monkeypatch
):
    monkeypatch.chdir(ran.place)
    assert unfinished() == set()
    Path("rows.txt").write_text("new", encoding="utf-8")
    assert unfinished() == {"02_two"}
    Path("rows.txt").write_text("old", encoding="utf-8")
    was = Path("imgs.tsv").stat()
    Path("imgs.tsv").touch()  # 200 GB are not read to tell whether they changed
    assert unfinished() == {"02_two"}
    os.utime("imgs.tsv", ns=(was.st_atime_ns, was.st_mtime_ns))
    Path(P).write_text(f"{GIVEN}figures_dir: elsewhere\n", encoding="utf-8")
    assert unfinished() == DONE
    Path(P).write_text(GIVEN, encoding="utf-8")
    assert unfinished() == set()
    copy = Path("runs/guide/p/guide/02_two.ipynb")
    copy.write_bytes(copy.read_bytes()[:200])
    assert unfinished() == {"02_two"}
    Path("runs/guide/p/guide/08_twice.ipynb").unlink()
    shown = Path("notebooks/guide/10_shown.ipynb")
    shown.write_text(shown.read_text().replace("A thing.", "Another."), encoding="utf-8")
    states = [section.state for section in write_report([Path(P)])[1]]
    assert "cannot be read" in states[1]
    assert "not run" in states[4]
    assert "have changed since" in states[6]
    Path("figures/guide/01_one.csv").unlink()
    assert unfinished() == {"01_one", "02_two"}
    monkeypatch.chdir("notebooks")  # a second run from a folder below
    status, again = said("run", P, "--only", "01", "--only", "02,guide/09")
    assert (status, again.count("] done in")) == (0, 2)
    assert "[guide/09_last] unchanged since" in again
    assert write_report([Path(P)])[1][1].state == "done"
    status, again = said("run", P, "--only", "guide/09", "--force")
    assert (status, again.count("] done in")) == (0, 1)


@pytest.mark.parametrize("asked", [None, 1, 50])
@pytest.mark.parametrize("model", ["field-guide-vlm-few", "gpt-4o@openai", "some/model"])
def test_all_notebooks_together_have_the_cores_and_the_memory_that_there_are(asked, model):
    settings = {"models": [model], "hardware": {"device": "cpu"}}
    jobs, threads = job_limits([settings] * 12, asked)
    assert jobs * (threads or 0) <= max(cpu_count(), jobs)
    if asked:
        assert jobs == min(12, asked)
    elif model == "field-guide-vlm-few":
        assert jobs == 1 or jobs * KERNEL < psutil.virtual_memory().total
    else:
        assert jobs == 1  # what it takes is not known
    assert job_limits([{"hardware": {"device": "cuda"}}] * 2, None)[0] == 1


def test_a_notebook_that_another_process_is_at_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book, output = tmp_path / "notebooks/guide/01_one.ipynb", tmp_path / "01_one.ipynb"
    refused = "another `run of guide/01_one` is at work"
    with run_lock(output.with_suffix(".lock"), ""), pytest.raises(VragError, match=refused):
        LocalPool().execute(book, output, {})
    assert not list(tmp_path.glob("01_one.*.yaml"))


LONG = """import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
pathlib.Path("child").touch()
time.sleep(300)"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_runner_that_is_ended_leaves_nothing_that_it_started(how, here, monkeypatch):
    """`timing/kills.py` kills runners, papermills and kernels by each of three signals."""
    (here / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(here / "tmp"))
    notebook(here / "notebooks/guide/02_two.ipynb", "k = 1", LONG)
    with running(here, "vrag_kit.runner.cli", "run", P, "--only", "02") as runner:
        until((here / "child").exists)
        started = psutil.Process(runner.pid).children(recursive=True)
        assert len(started) >= 3  # papermill, kernel, child
        assert [file.parent.suffix for file in here.rglob("tmp*.json")] == [".kernel"]
        os.killpg(runner.pid, how) if how == signal.SIGINT else runner.kill()
        assert runner.wait(90) == (130 if how == signal.SIGINT else -how)
        until(lambda: not any(map(psutil.Process.is_running, started)))
        until(lambda: not list(here.rglob("tmp*.json")))  # by which a kernel is reached
    log = (here / "run.log").read_text(encoding="utf-8")
    assert "died" not in log
    assert not any(map(is_finished, read_plan(Path(P)).tasks))


UNANSWERED = "EVERY ANSWER OF 'bad' FAILED, 6 times, as by error: HTTP 500: …"
UNJUDGED = "VERDICTS OF 'strict' FAILED, 5 of 6 times, as by error: HTTP 503: busy."
SECRET = "tk-Lorem1psum2dolor"


@pytest.mark.slow
def test_a_model_that_answered_nothing_and_lost_verdicts_are_told_and_a_header_is_in_no_file(
    guide_folder, tmp_path, monkeypatch
):
    small_project(tmp_path, guide_folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GATEWAY", raising=False)
    plans = {"Student Answer": ["say Score: 1", "status 503 busy"]}
    with StrangeServer(plans) as good, StrangeServer({"?": [f"status 500 {SECRET}"]}) as bad:
        good.wants = bad.wants = {"Authorization": f"Bearer {SECRET}"}
        how = {"decoding": {"temperature": 0}, "retries": 0, "key": "GATEWAY"}
        models = [{"model": f"good@{good.url}", **how}, {"model": f"bad@{bad.url}", **how}]
        judge = {"model": f"strict@{good.url}", **how}
        content = {"notebooks": [ASKING_BOOK], "data": small_data(guide_folder)}
        content |= {"models": models, "judge": judge}
        Path("p.yaml").write_text(json.dumps(content), encoding="utf-8")
        status, checked = said("run", "--dry-run", "p.yaml")
        asked = [*good.requests, *bad.requests]
        assert (status, checked.count("`export GATEWAY=…`"), asked) == (1, 3, [])
        monkeypatch.setenv("GATEWAY", SECRET)
        status, told = said("run", "p.yaml")
    line = told.splitlines()[-1]
    assert (status, f"{ASKING_BOOK}  done" in line) == (0, True), told
    assert UNANSWERED in line
    assert UNJUDGED in line
    assert "'good'" not in line
    _, reported = said("report", "p.yaml")
    page = Path("runs/p/report.html").read_text(encoding="utf-8")
    assert f"{ASKING_BOOK}: {UNANSWERED}" in reported
    assert f'<p class="note">{UNANSWERED}' in unescape(page)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file for file in files if SECRET[3:].encode() in file.read_bytes()] == []
    assert SECRET[3:] not in f"{checked}{told}{reported}"


CLASS = "class Letters:\n    bonus = 0\n"


@pytest.mark.slow
def test_changed_code_of_the_package_runs_the_notebook_again(project):
    """What a notebook is known by, told by a copy of the package before and after a change."""
    package = project / "copy" / "vrag_kit"
    ignored = shutil.ignore_patterns("weights", "tables", "__pycache__")
    shutil.copytree(ROOT / "vrag_kit", package, ignore=ignored)
    known_by = (
        "from pathlib import Path; from vrag_kit.runner.stamp import run_fingerprint;"
        "print(run_fingerprint(Path('notebooks/guide/01_one.ipynb').absolute(), {}, {})['code'])"
    )

    def code() -> str:
        environment = {**os.environ, "PYTHONPATH": str(package.parent)}
        command = [sys.executable, "-c", known_by]
        return subprocess.check_output(command, cwd=project, env=environment, text=True)

    before = code()
    assert before == code()
    for more, same in (("\n# why\n", True), ("\nANOTHER = 1\n", False)):
        with (package / "errors.py").open("a", encoding="utf-8") as file:
            file.write(more)
        assert (before == code()) is same


def test_a_rerun_sees_that_the_classs_file_changed_or_one_that_it_imports(mine):
    file = mine(f"import json\n\nfrom halves import HALF\n{CLASS}")
    helper = file.with_name("halves.py")
    helper.write_text("from vrag_kit.types import Query\n\nHALF = 0.5", encoding="utf-8")
    assert custom_files("mine:Letters") == sorted([file, helper])
    own = Path("notebooks", "own.ipynb").absolute()
    notebook(own, "")
    settings = {"retrievers": [{"model": "mine:Letters", "bonus": 1}], "metrics": ["mine:rbp"]}

    def keys() -> dict[str, str]:
        return run_fingerprint(own, {}, settings)["data"]

    first = keys()
    assert first == keys()
    helper.write_text("HALF = 0.25", encoding="utf-8")
    second = keys()
    assert all(second[name] != key for name, key in first.items())
    file.write_text(f"{CLASS}\n# another", encoding="utf-8")
    assert all(keys()[name] not in (first[name], second[name]) for name in first)
    file.write_text("def broken(:", encoding="utf-8")
    assert custom_files("mine:Letters") == [file]
