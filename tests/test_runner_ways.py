"""How the runner is told which notebooks, where and how many at once; and that nothing
lives on when it ends, whatever ends it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strange_server import StrangeServer
from test_runner import as_in_a_terminal, notebook, project, vrag

from vrag_kit.cores import cores
from vrag_kit.runner.report import write_report
from vrag_kit.runner.shares import KERNEL, shares

__all__ = ["project"]
P = "params/guide/p.yaml"


def without_threads() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}


def test_each_of_two_notebooks_at_once_gets_half_the_cores_and_logs_tell_when(
    project: Path,
) -> None:
    told = "import os; print('threads', os.environ.get('OMP_NUM_THREADS'))"
    for stem in ("01_one", "02_two"):
        notebook(project / "notebooks" / "guide" / f"{stem}.ipynb", "k = 1", told)
    done = vrag(project, "run", P, "--jobs", "2", env=without_threads())
    assert done.stdout.count(f"threads {max(1, cores() // 2)}\n") == 2, done.stdout
    log = (project / "runs/guide/p/guide/01_one.log").read_text(encoding="utf-8")
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ threads", log, re.MULTILINE), log


def test_a_line_is_in_the_log_while_its_notebook_still_runs(project: Path) -> None:
    waits = """
import pathlib, time
log = pathlib.Path("runs/guide/p/guide/01_one.log")
deadline = time.monotonic() + 20
while "the first line" not in log.read_text() and time.monotonic() < deadline:
    time.sleep(0.05)
print("in time:", time.monotonic() < deadline)
"""
    notebook(
        project / "notebooks" / "guide" / "01_one.ipynb", "k = 1", "print('the first line')", waits
    )
    done = vrag(project, "run", P, "--only", "01")
    assert "in time: True" in done.stdout, done.stdout


def test_several_test_processes_share_the_cores_too() -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    assert workers == 1 or int(os.environ["OMP_NUM_THREADS"]) <= max(1, cores() // workers)


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
    share = shares([{"models": [model], "run_with": {"device": device}}] * n, asked)
    assert 1 <= share.jobs <= max(1, n)
    assert share.jobs * (share.threads or 0) <= max(cores(), share.jobs)
    if asked:
        assert share.jobs == max(1, min(n, asked))
    elif device != "cpu" or model != "field-guide-vlm-few":
        assert share.jobs == 1  # what it takes is not known, or not to be had twice
    else:
        assert share.jobs <= cores()
        assert share.jobs == 1 or share.jobs * KERNEL < psutil.virtual_memory().total


def test_several_notebooks_are_chosen_from_a_folder_below(project: Path) -> None:
    notebook(project / "notebooks" / "guide" / "03_three.ipynb", "k = 1", "print(k)")
    done = vrag(project / "notebooks", "run", P, "--only", "01", "--only", "02,guide/01")
    assert "[guide/01_one] done" in done.stdout, done.stderr
    assert "[guide/02_two] done" in done.stdout
    assert "03_three" not in done.stdout


def test_what_one_notebook_cannot_run_with_does_not_hinder_others_that_are_chosen(
    project: Path,
) -> None:
    notebook(project / "notebooks" / "guide" / "03_three.ipynb", "judge = 'rule'", "print(judge)")
    (project / P).write_text("judge: ruel\n", encoding="utf-8")
    for command in ("check", "run"):
        whole = vrag(project, command, P)
        assert "judge is 'ruel'; expected 'rule'" in whole.stdout + whole.stderr
        chosen = vrag(project, command, P, "--only", "01")
        assert "guide/01_one" in chosen.stdout
        assert "ruel" not in chosen.stdout + chosen.stderr
    assert chosen.returncode == 0, chosen.stdout


def test_outside_of_every_project_the_parameter_file_tells_which(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = vrag(elsewhere, "run", str(project / P), "--only", "01")
    assert "[guide/01_one] done" in done.stdout, done.stderr
    assert (project / "runs/guide/p/guide/01_one.ipynb").is_file()
    assert list(elsewhere.iterdir()) == []
    wrong = vrag(elsewhere, "run", str(project / P), "--only", "01,07")
    assert (wrong.returncode, "no notebook '07'" in wrong.stderr) == (2, True)


def test_the_run_and_the_report_agree_on_a_copy_that_was_cut_short(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    vrag(project, "run", P, "--only", "01")
    copy = project / "runs/guide/p/guide/01_one.ipynb"
    copy.write_bytes(copy.read_bytes()[:200])
    assert write_report([Path(P)]).chapters[0].state == "not readable"
    again = vrag(project, "run", P, "--only", "01")
    assert "[guide/01_one] done" in again.stdout
    assert write_report([Path(P)]).chapters[0].state == "done"


UNCHANGED = """import sys
from vrag_kit.runner.cli import app
for command in ("run", "report"):
    app([command, "params/guide/p.yaml"], standalone_mode=False)
print("imported:", sorted({*sys.argv[1:]} & set(sys.modules)))"""
HEAVY = ("jsonschema", "matplotlib", "nbconvert", "nbformat", "numpy", "pandas", "papermill")


def test_what_is_unchanged_is_known_at_once_without_a_heavy_import(project: Path) -> None:
    vrag(project, "run", P)
    written = vrag(project, "report", P)
    assert written.returncode == 0, written.stderr
    done = subprocess.run(
        [sys.executable, "-c", UNCHANGED, *HEAVY],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("unchanged since its last run: skipped") == 2, done.stderr
    assert "report.html, unchanged since it was written" in done.stdout
    assert done.stdout.splitlines()[-1] == "imported: []"


MEETS = """import pathlib, time
pathlib.Path("here-is-{}").touch()
deadline = time.monotonic() + 60
while not pathlib.Path("here-is-{}").exists() and time.monotonic() < deadline:
    time.sleep(0.05)
print("met:", time.monotonic() < deadline)"""


def test_the_next_files_notebooks_begin_while_the_last_of_the_first_still_runs(
    project: Path,
) -> None:
    for name in ("notebooks", "params"):
        (project / name / "other").mkdir()
    one, three = (project / "notebooks" / name for name in ("guide/01_one", "other/03_three"))
    notebook(one.with_suffix(".ipynb"), "k = 1", MEETS.format("one", "three"))
    notebook(three.with_suffix(".ipynb"), "k = 1", MEETS.format("three", "one"))
    (project / "params" / "other" / "p.yaml").write_text("k: 5\n", encoding="utf-8")
    files = (P, "params/other/p.yaml")
    done = vrag(project, "run", *files, "--jobs", "2", "--only", "01,03")
    assert done.stdout.count("met: True") == 2, done.stdout
    assert done.stdout.count("] done in") == 2


def test_a_notebook_of_two_files_runs_for_one_after_the_other(project: Path) -> None:
    """Both would write the same figures; those of the last file are there in the end."""
    counts = """import pathlib, time
place = pathlib.Path("at-work")
place.touch(exist_ok=False)
time.sleep(0.5)
place.unlink()
pathlib.Path(figures_dir, "guide/01_one.csv").write_text(str(k))"""
    figures = str(project / "figures")
    one = project / "notebooks" / "guide" / "01_one.ipynb"
    notebook(one, f"figures_dir = {figures!r}\nk = 1", counts)
    (project / "params" / "guide" / "q.yaml").write_text("k: 7\n", encoding="utf-8")
    done = vrag(project, "run", P, "params/guide/q.yaml", "--jobs", "2", "--only", "01")
    assert done.stdout.count("] done in") == 2, done.stdout
    assert (project / "figures/guide/01_one.csv").read_text(encoding="utf-8") == "7"


ASKING = """from vrag_kit.generation import AnswerStore, ask_prompts, load_generator
from vrag_kit.types import Message
with AnswerStore("answers.sqlite") as store:
    for name in ("good", "bad"):
        entry = {"model": f"{name}@{url}", "retries": 0, "name": name}
        prompts = [(Message(role="user", parts=(f"{name} {n}?",)),) for n in range(3)]
        ask_prompts(load_generator(entry, decoding="greedy"), prompts, store)"""
JUDGING = """import pandas as pd
from vrag_kit.judging import judge_all, load_judge
from vrag_kit.papers.visual_rag import RUBRIC
from vrag_kit.types import Benchmark, Query
query = Query(query_id="q", text="Which colour?", answers=("red",))
one = Benchmark(name="b", fingerprint="f", queries={"q": query}, corpus={}, qrels={})
said = {"query_id": "q", "answer": ["zinnober", "karmin"], "status": "ok", "detail": ""}
entry = {"model": f"strict@{url}", "retries": 0, "decoding": "greedy"}
judged = judge_all(load_judge(entry, ".", rubric=RUBRIC), one, pd.DataFrame(said))"""


def test_a_model_that_answered_nothing_and_verdicts_that_failed_are_told_by_summary_and_page(
    project: Path,
) -> None:
    plans = {"zinnober": ["say Score: 1"], "karmin": ["status 503 busy"]}
    with StrangeServer({**plans, "bad": ["status 500 broken"]}) as server:
        book = project / "notebooks" / "guide" / "01_one.ipynb"
        notebook(book, f"url = {server.url!r}\nk = 1", ASKING, JUDGING)
        done = vrag(project, "run", P, "--only", "01")
        again = vrag(project, "run", P, "--only", "01")
    assert done.returncode == 0, done.stdout + done.stderr
    for said, state in ((done, "done"), (again, "unchanged")):
        line = said.stdout.splitlines()[-1]
        assert f"guide/01_one  {state}" in line, said.stdout
        assert "EVERY ANSWER OF 'bad' FAILED, 3 times, as by error: HTTP 500: broken" in line
        assert f"VERDICTS OF 'strict' FAILED, {UNJUDGED}" in line
        assert "'good'" not in line
    reported = vrag(project, "report", P)
    page = (project / "runs" / "guide" / "p" / "report.html").read_text(encoding="utf-8")
    note = "Every answer of 'bad' failed, 3 times, as by error: HTTP 500: broken."
    assert f"guide/01_one: {note}" in reported.stdout, reported.stdout + reported.stderr
    assert f"Verdicts of 'strict' failed, {UNJUDGED}." in reported.stdout
    assert f'<p class="note">{note}</p>' in unescape(page)
    assert '<td class="state a model without answers">' in page
    assert "'good'" not in unescape(page).split("<summary>Code")[0]


UNJUDGED = (
    "1 of 2 times, as by error: HTTP 503: busy. Calls that failed are asked again with"
    " `run_with: {retry_failures: true}`"
)


LONG = """import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
pathlib.Path("child-of-{}").write_text(str(child.pid))
time.sleep(300)"""


def start(
    project: Path, stems: Sequence[str], *options: str
) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A runner that is at these notebooks, and all that it has started: for each papermill,
    a kernel and its child.
    """
    for stem in stems:
        notebook(project / "notebooks" / "guide" / f"{stem}.ipynb", "k = 1", LONG.format(stem))
    runner = subprocess.Popen(
        [sys.executable, "-m", "vrag_kit.runner", "run", P, *options],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=as_in_a_terminal,
        start_new_session=True,
    )
    for stem in stems:
        assert soon((project / f"child-of-{stem}").exists), "it did not begin"
    below = psutil.Process(runner.pid).children(recursive=True)
    assert len(below) >= 3 * len(stems)
    return runner, below


@pytest.fixture
def connections(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Where connection files of kernels lie, each a line: in the project, or where programs
    put what is temporary.
    """
    (project / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project / "tmp"))

    def found() -> list[str]:
        files = project.rglob("tmp*.json")
        return sorted(file.parent.relative_to(project).as_posix() for file in files)

    return found


def soon(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 90
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return true()


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_whatever_ends_the_runner_ends_all_that_it_started(
    project: Path, how: signal.Signals, connections: Callable[[], list[str]]
) -> None:
    runner, below = start(project, ["01_one"], "--only", "01")
    assert connections() == ["runs/guide/p/guide/01_one.kernel"]
    runner.send_signal(how)
    said, _ = runner.communicate(timeout=90)
    assert runner.returncode != 0
    assert soon(lambda: not any(map(psutil.Process.is_running, below))), below
    assert "died" not in said
    assert soon(lambda: not connections())


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_what_a_notebook_has_started_ends_with_it(project: Path) -> None:
    cell = LONG.format("01_one").rpartition("\n")[0]  # it does not wait
    notebook(project / "notebooks" / "guide" / "01_one.ipynb", "k = 1", cell)
    done = vrag(project, "run", P, "--only", "01")
    assert done.returncode == 0, done.stdout
    left = int((project / "child-of-01_one").read_text(encoding="utf-8"))
    assert soon(lambda: not psutil.pid_exists(left))


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_what_was_finished_before_ctrl_c_is_not_run_again(project: Path) -> None:
    runner, below = start(project, ["02_two"], "--jobs", "1")
    os.killpg(runner.pid, signal.SIGINT)  # as Ctrl-C does
    said, _ = runner.communicate(timeout=90)
    assert soon(lambda: not any(map(psutil.Process.is_running, below))), below
    assert (runner.returncode, "interrupted: run the same command" in said) == (130, True)
    assert "died" not in said
    notebook(project / "notebooks" / "guide" / "02_two.ipynb", "source = ''", "print('done')")
    again = vrag(project, "run", P)
    assert "[guide/01_one] unchanged since its last run" in again.stdout
    assert "[guide/02_two] done" in again.stdout


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_each_process_below_the_runner_may_be_killed_alone_by_any_signal(
    project: Path, connections: Callable[[], list[str]]
) -> None:
    stems = ["01_one", "02_two", "03_three"]
    left = project / "runs" / "guide" / "p" / "guide" / "02_two.kernel"
    left.mkdir(parents=True)
    (left / "tmpold.json").write_text("{}", encoding="utf-8")  # of a run that was killed whole
    runner, below = start(project, stems, "--jobs", "3")
    assert connections() == [f"runs/guide/p/guide/{stem}.kernel" for stem in stems]
    papermills = {}
    for each in psutil.Process(runner.pid).children():
        (stem,) = [stem for stem in stems if stem in " ".join(each.cmdline())]
        papermills[stem] = each
    for stem, how in zip(stems, (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP), strict=True):
        papermill = papermills[stem]
        victim = papermill.children()[0] if stem == "03_three" else papermill
        victim.send_signal(how)
    said, _ = runner.communicate(timeout=90)
    assert soon(lambda: not any(map(psutil.Process.is_running, below))), below
    assert (runner.returncode, connections()) == (1, [])
    lines = said.splitlines()[-3:]
    died = ("papermill was killed by signal 9", "papermill was killed by signal 15", "the kernel")
    for stem, words, line in zip(stems, died, lines, strict=True):
        assert line.startswith(f"guide/{stem}"), said
        assert f"cell 2 `import pathlib, subprocess, sys, time`: {words}" in line
