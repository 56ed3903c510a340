"""The runner: refuses what no notebook declares, skips what is done, goes on after a
failure, and names the failing cell.

One run of ten small notebooks serves most of these tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from own_project import notebook
from typer.testing import CliRunner

from vrag_kit.errors import VragError
from vrag_kit.processes import available_cores
from vrag_kit.runner.cli import app
from vrag_kit.runner.plan import read_plan
from vrag_kit.runner.report import write_report
from vrag_kit.runner.run import KERNEL, job_limits, plan_tasks

P = "params/guide/p.yaml"
FILES = (P, "params/other/p.yaml", "params/guide/q.yaml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two notebooks that write one file each."""
    for name in ("params", "figures"):
        (tmp_path / name / "guide").mkdir(parents=True)
    books, figures = tmp_path / "notebooks" / "guide", str(tmp_path / "figures")
    notebook(
        books / "01_one.ipynb",
        f"figures_dir = {figures!r}\nk = 1\nshare = 0.5",
        "from pathlib import Path\nPath(figures_dir, 'guide/01_one.csv').write_text(str(k))",
    )
    notebook(
        books / "02_two.ipynb",
        f"figures_dir = {figures!r}\nsource = ''",
        "from pathlib import Path\nPath(figures_dir, 'guide/02_two.csv').write_text('none')",
    )
    (tmp_path / P).write_text("k: 2\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the current folder."""
    monkeypatch.chdir(project)
    return project


def as_in_a_terminal() -> None:
    """Interrupts and hang-ups are heard, also where these tests run in the background."""
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def vrag(
    project: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command, as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "vrag_kit.runner", *arguments],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def said(*arguments: str) -> tuple[int, str]:
    """(exit status, what is printed) of the command in this process."""
    done = CliRunner().invoke(app, arguments)
    if isinstance(done.exception, VragError):  # `main` prints it
        return 2, f"{done.output}{done.exception}"
    return done.exit_code, done.output


FIRST = """import os, pathlib, subprocess, sys, time
pathlib.Path(figures_dir, 'guide/01_one.csv').write_text(str(k))
print('k is', k, share, prompts, hardware, web_search)
print('threads', os.environ.get('OMP_NUM_THREADS'))
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
print('child', child.pid)"""
SEES_ITS_LINE = """log = pathlib.Path("runs/guide/p/guide/01_one.log")
deadline = time.monotonic() + 60
while "k is" not in log.read_text() and time.monotonic() < deadline:
    time.sleep(0.05)
print("in time:", time.monotonic() < deadline)"""
MAPPINGS = (
    "hardware = {'device': 'cpu', 'batch_size': 32}\nweb_search = {'image_k': 30, 'web_k': 50}"
)
SOURCE = """from pathlib import Path
Path(figures_dir, 'guide/02_two.csv').write_text(Path(source).read_text())"""
KILL = "import os, signal, time\nos.kill({}, signal.SIGKILL)\ntime.sleep(5)"
HALF = "import pathlib\npathlib.Path('runs/guide/p/guide/05_half.ipynb').write_text('{')\n"
"""The copy is as half written as papermill would leave it."""
ALONE = """import pathlib, time
place = pathlib.Path("at-work")
place.touch(exist_ok=False)
time.sleep(0.5)
place.unlink()
pathlib.Path(figures_dir, "guide/08_twice.csv").write_text(str(k))"""
MEETS = """import pathlib, time
pathlib.Path("here-is-{}").touch()
deadline = time.monotonic() + 60
while not pathlib.Path("here-is-{}").exists() and time.monotonic() < deadline:
    time.sleep(0.05)
print("met:", time.monotonic() < deadline)"""
OTHER = "pathlib.Path(figures_dir, 'other/01_one.csv').write_text(str(k))"
GIVEN = """k: 2
share: 1
prompts: [b, c]
hardware: {device: cpu, batch_size: 2}
web_search: {image_k: 30, web_k: 5}
source: rows.txt
webqa: {name: many, annotations: none.json, images: imgs.tsv}
"""


def kernel_that_dies_at_first(project: Path, name: str, times: int) -> None:
    """A kernel that dies `times` times as it starts."""
    kernel = project / "jupyter" / "kernels" / name
    kernel.mkdir(parents=True)
    starts = kernel / "starts"
    program = (
        f"import pathlib, sys; starts = pathlib.Path({str(starts)!r}); starts.touch();"
        f" starts.write_text(starts.read_text() + '.');"
        f" sys.exit(1) if len(starts.read_text()) <= {times} else None;"
        " from ipykernel import kernelapp; kernelapp.launch_new_instance()"
    )
    argv = [sys.executable, "-c", program, "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": name, "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


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
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
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
    notebook(guide / "01_one.ipynb", whole, FIRST, SEES_ITS_LINE)
    notebook(guide / "02_two.ipynb", f"{k}\nsource = ''\nwebqa = ''", SOURCE)
    notebook(guide / "03_fails.ipynb", k, "# NBVAL_CHECK_OUTPUT\n\nratio = 1 / (k - 2)\nprint(1)")
    notebook(guide / "04_dies.ipynb", k, KILL.format("os.getpid()"))
    notebook(guide / "05_half.ipynb", k, HALF + KILL.format("os.getppid()"))
    for number, name, times in ((6, "late", 2), (7, "never", 3)):
        kernel_that_dies_at_first(place, name, times)
        notebook(guide / f"0{number}_{name}.ipynb", k, "print('it began')", kernel=name)
    notebook(guide / "08_twice.ipynb", k, ALONE)
    notebook(guide / "09_last.ipynb", k, MEETS.format("last", "next"))
    notebook(place / "notebooks/other/01_one.ipynb", k, MEETS.format("next", "last"), OTHER)
    for file, values in zip(FILES, (GIVEN, "k: 5", "notebooks: [8]\nk: 7"), strict=True):
        (place / file).write_text(values, encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    env["JUPYTER_PATH"] = str(place / "jupyter")
    done = vrag(place, "run", *FILES, "--jobs", "2", env=env)
    assert "01_one" in done.stdout, done.stderr
    return Ran(place, done.returncode, done.stdout)


@pytest.mark.slow
def test_notebooks_get_their_own_parameters(ran: Ran) -> None:
    assert ran.file("figures/guide/01_one.csv") == "2"
    assert ran.file("figures/guide/02_two.csv") == "old"
    mappings = "{'device': 'cpu', 'batch_size': 2} {'image_k': 30, 'web_k': 5}"
    assert f"[guide/01_one] k is 2 1 ['b', 'c'] {mappings}" in ran.said  # 1 fits a fraction


@pytest.mark.slow
def test_a_number_may_occur_in_two_folders_and_several_files_run_at_once(ran: Ran) -> None:
    assert ran.file("figures/other/01_one.csv") == "5"
    for folder in ("guide", "other"):
        copies = ran.place / "runs" / folder / "p" / folder
        assert {file.suffix for file in copies.glob("01_one.*")} >= {".ipynb", ".log", ".json"}
        assert f"[{folder}/01_one] done in" in ran.said
    assert ran.said.count("met: True") == 2  # the last of a file, and the first of the next


@pytest.mark.slow
def test_a_notebook_of_two_files_runs_for_one_after_the_other(ran: Ran) -> None:
    """Both would write the same figures; those of the last file are there in the end."""
    assert ran.said.count("[guide/08_twice] done in") == 2
    assert ran.file("figures/guide/08_twice.csv") == "7"


@pytest.mark.slow
def test_each_of_two_notebooks_at_once_gets_half_the_cores_and_logs_tell_when(ran: Ran) -> None:
    assert f"[guide/01_one] threads {max(1, available_cores() // 2)}\n" in ran.said
    log = ran.file("runs/guide/p/guide/01_one.log")
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ threads", log, re.MULTILINE), log


@pytest.mark.slow
def test_a_line_is_in_the_log_while_its_notebook_still_runs(ran: Ran) -> None:
    assert "[guide/01_one] in time: True" in ran.said


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_what_a_notebook_has_started_ends_with_it(ran: Ran) -> None:
    assert not psutil.pid_exists(int(re.search(r"child (\d+)", ran.said)[1]))  # type: ignore[index]


@pytest.mark.slow
def test_a_failing_cell_is_named_and_the_other_notebooks_still_run(ran: Ran) -> None:
    assert ran.status == 1
    failed = ran.result("guide/03_fails")
    assert failed.split()[1] == "failed"
    assert "cell 2 `ratio = 1 / (k - 2)`: ZeroDivisionError" in failed
    assert "runs/guide/p/guide/03_fails.log" in failed.partition("; see ")[2]
    assert ran.result("guide/09_last").split()[1] == "done"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_what_is_killed_is_named_and_does_not_take_the_run_with_it(ran: Ran) -> None:
    died = "cell 2 `import os, signal, time`: the kernel died; see "
    assert died in ran.result("guide/04_dies")
    assert "papermill was killed by signal 9 (Killed); see " in ran.result("guide/05_half")


@pytest.mark.slow
def test_a_kernel_that_dies_as_it_starts_is_started_again_twice_at_most(ran: Ran) -> None:
    for name, status in (("guide/06_late", "done"), ("guide/07_never", "failed")):
        assert ran.result(name).split()[1] == status
    assert ran.said.count("] it began") == 1


DONE = {"01_one", "02_two", "06_late", "09_last"}
HEAVY = {"jsonschema", "matplotlib", "nbconvert", "nbformat", "numpy", "pandas", "papermill"}
HEAVY |= {"datasets", "openai", "torch", "transformers"}
ONLY = ["--only", ",".join(sorted(DONE))]
TWICE = f"""import sys
from vrag_kit.runner.cli import app
app(["run", "{P}", *{ONLY}], standalone_mode=False)
print("imported:", sorted({HEAVY} & set(sys.modules)))"""


@pytest.mark.slow
def test_what_is_unchanged_is_known_at_once_without_a_heavy_import(
    ran: Ran,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWICE], cwd=ran.place, capture_output=True, text=True, check=False
    )
    assert done.stdout.count("unchanged since its last run: skipped") == len(DONE), done.stderr
    assert done.stdout.splitlines()[-1] == "imported: []"


def unfinished() -> set[str]:
    """What a run would run again, of what ended well."""
    tasks = plan_tasks(read_plan(Path(P)))
    return {task.notebook.stem for task in tasks if not task.is_finished()} & DONE


@pytest.mark.slow
def test_a_notebook_runs_again_when_its_figure_its_data_or_its_copy_is_not_as_it_was(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert "cannot be read" in write_report([Path(P)]).sections[1].state
    Path("figures/guide/01_one.csv").unlink()
    assert unfinished() == {"01_one", "02_two"}
    monkeypatch.chdir("notebooks")  # a second run from a folder below
    status, again = said("run", P, "--only", "01", "--only", "02,guide/09")
    assert status == 0
    assert again.count("] done in") == 2
    assert "[guide/09_last] unchanged since" in again
    assert (ran.place / "figures/guide/01_one.csv").exists()
    assert write_report([Path(P)]).sections[1].state == "done"
    status, again = said("run", P, "--only", "guide/09", "--force")
    assert (status, again.count("] done in")) == (0, 1)


@pytest.mark.slow
def test_changed_code_of_the_package_runs_the_notebook_again(project: Path) -> None:
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


@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(0, 12),
    asked=st.one_of(st.none(), st.integers(1, 50)),
    device=st.sampled_from(["cpu", "cuda"]),
    model=st.sampled_from(["field-guide-vlm-few", "gpt-4o@openai", "some/model"]),
)
def test_all_notebooks_together_have_the_cores_and_the_memory_that_there_are(
    n: int, asked: int | None, device: str, model: str
) -> None:
    share = job_limits([{"models": [model], "hardware": {"device": device}}] * n, asked)
    assert 1 <= share.jobs <= max(1, n)
    assert share.jobs * (share.threads or 0) <= max(available_cores(), share.jobs)
    if asked:
        assert share.jobs == max(1, min(n, asked))
    elif device != "cpu" or model != "field-guide-vlm-few":
        assert share.jobs == 1  # what it takes is not known, or not to be had twice
    else:
        assert share.jobs <= available_cores()
        assert share.jobs == 1 or share.jobs * KERNEL < psutil.virtual_memory().total


def test_several_test_processes_share_the_cores_too() -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    assert workers == 1 or int(os.environ["OMP_NUM_THREADS"]) <= max(
        1, available_cores() // workers
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("kk: 2\n", ["no notebook declares 'kk'", "figures_dir, k, share, source"]),
        ("k: ten\n", ["k is 'ten'", "01_one expects a whole number from 1 on, such as k = 1"]),
        ("notebooks: [gide]", ["'gide'", "Did you mean 'guide'?"]),
        ("notebooks: [zzzz]", ["'zzzz'", "\n  guide/01_one\n"]),
        ("notebooks: [guide/0]", ["'guide/0'", "\n  guide/01_one\n  guide/02_two"]),
        ("notebooks: guide", ["notebooks is 'guide'", "`notebooks: [guide]`"]),
    ],
)
def test_a_bad_parameter_file_is_refused_before_anything_runs(
    here: Path, content: str, words: list[str]
) -> None:
    (here / P).write_text(content, encoding="utf-8")
    status, refused = said("run", P)
    assert status == 2
    assert [word for word in words if word not in refused] == [], refused
    assert not list((here / "figures" / "guide").iterdir())


@pytest.mark.parametrize("entry", ["02", '"02"', "2", "two", "guide/02", "02_two"])
def test_a_notebook_may_be_called_by_its_number_or_a_part_of_its_name(
    here: Path, entry: str
) -> None:
    Path("mine.yaml").write_text(f"notebooks: [{entry}]\n", encoding="utf-8")
    assert [book.stem for book in read_plan(Path("mine.yaml")).given] == ["02_two"]
    assert read_plan(Path("mine.yaml")).folder == here / "runs" / "mine"
    Path("mine.yaml").write_text("k: 3\n", encoding="utf-8")
    with pytest.raises(VragError, match=r"`notebooks: \[guide\]`"):
        read_plan(Path("mine.yaml"))


def test_counts_of_jobs_and_names_that_are_not_there_are_refused_wherever_one_stands(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))  # the file tells which project
    for arguments, words in (
        ([str(project / P), "--only", "01,07"], "no notebook '07'"),
        ([P, "--jobs", "0"], "--jobs is 0"),
        (["params/guide/q.yaml"], f"no such parameter file; found {P}"),
    ):
        status, refused = said("run", *arguments)
        assert (status, words in refused, Path.cwd()) == (2, True, project), refused


def test_the_check_calls_folders_what_the_parameters_call_them(here: Path) -> None:
    book = here / "notebooks" / "guide" / "01_one.ipynb"
    opens = "open(f'{benchmark_dir}/annotations.jsonl')"
    notebook(book, "benchmark_dir = 'data/things'\nfigures_dir = ''\nk = 1", opens)
    (here / P).write_text("k: 2\nfigures_dir: some/new/folder\n", encoding="utf-8")
    before = {path: path.stat().st_mtime_ns for path in sorted(here.rglob("*"))}
    _, told = said("check", P)
    assert "'data/things/annotations.jsonl'" in told
    assert "cannot be written" not in told  # a folder that is not there yet is not made
    assert {path: path.stat().st_mtime_ns for path in sorted(here.rglob("*"))} == before


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("rows.txt/deeper/figures", "rows.txt takes no file"),
        ("/proc/figures", "/proc takes no file"),
        ("read-only", "read-only takes no file"),
    ],
)
def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(
    folder: str, found: str, here: Path
) -> None:
    if folder.startswith("/proc") and not Path("/proc/self").exists():
        pytest.skip("needs Linux")
    if folder == "read-only" and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (here / "rows.txt").write_text("in the way", encoding="utf-8")
    (here / "read-only").mkdir(mode=0o555)
    (here / P).write_text(f"figures_dir: {folder}\n", encoding="utf-8")
    for command in ("check", "forecast", "run"):
        ended, told = said(command, P)
        assert ended == 2, told
        assert f"figures_dir is '{folder}'" in told
        assert found in told
    assert not (here / "runs").exists()


def test_a_runs_folder_that_cannot_be_written_is_an_error(here: Path) -> None:
    (here / "runs").write_text("in the way", encoding="utf-8")
    status, told = said("run", P)
    assert (status, "runs takes no file" in told) == (2, True)


def test_check_lists_problems_of_annotations_and_exits_with_1(here: Path) -> None:
    (here / "rows.jsonl").write_text("{\n", encoding="utf-8")
    status, told = said("check", "rows.jsonl", ".")
    assert (status, "line 1" in told, "not JSON" in told) == (1, True, True)


def test_the_version_is_told() -> None:
    assert said("--version") == (0, f"vrag_kit {version('vrag_kit')}\n")
