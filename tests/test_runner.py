"""The runner: refuses what no notebook declares, skips what is done, goes on after a
failure, and names the failing cell.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from strange_server import StrangeServer

from vrag_kit.runner.failures import memory_kills, why_it_failed
from vrag_kit.runner.plan import read_plan


def notebook(path: Path, parameters: str, *cells: str) -> None:
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}),
            *map(nbformat.v4.new_code_cell, cells),
        ]
    )
    book.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(book, path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two notebooks that write one file each."""
    for name in ("notebooks", "params", "figures"):
        (tmp_path / name / "guide").mkdir(parents=True)
    figures = str(tmp_path / "figures")
    notebook(
        tmp_path / "notebooks" / "guide" / "01_one.ipynb",
        f"figures_dir = {figures!r}\nk = 1\nshare = 0.5",
        "from pathlib import Path\n"
        "Path(figures_dir, 'guide/01_one.csv').write_text(str(k))\n"
        "print('k is', k)",
    )
    notebook(
        tmp_path / "notebooks" / "guide" / "02_two.ipynb",
        f"figures_dir = {figures!r}\nsource = ''",
        "from pathlib import Path\nPath(figures_dir,"
        " 'guide/02_two.csv').write_text(Path(source).read_text() if source else 'none')",
    )
    (tmp_path / "params" / "guide" / "p.yaml").write_text("k: 2\n", encoding="utf-8")
    return tmp_path


def as_in_a_terminal() -> None:
    """Interrupts and hang-ups are heard, also where these tests run in the background."""
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def vrag(
    project: Path, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vrag_kit.runner", *arguments],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_notebooks_get_their_own_parameters_and_a_second_run_skips_them(project: Path) -> None:
    first = vrag(project, "run", "params/guide/p.yaml")
    assert first.returncode == 0, first.stdout + first.stderr
    assert (project / "figures" / "guide" / "01_one.csv").read_text(encoding="utf-8") == "2"
    assert "k is 2" in first.stdout
    second = vrag(project, "run", "params/guide/p.yaml")
    assert second.stdout.count("unchanged since its last run") == 2
    (project / "figures" / "guide" / "01_one.csv").unlink()
    third = vrag(project, "run", "params/guide/p.yaml")
    assert third.stdout.count("unchanged since its last run") == 1
    assert (project / "figures" / "guide" / "01_one.csv").exists()


def test_a_number_may_occur_in_two_folders_and_several_files_run_at_once(project: Path) -> None:
    for name in ("notebooks", "params", "figures"):
        (project / name / "other").mkdir()
    notebook(
        project / "notebooks" / "other" / "01_one.ipynb",
        f"figures_dir = {str(project / 'figures')!r}\nk = 3",
        "from pathlib import Path\nPath(figures_dir, 'other/01_one.csv').write_text(str(k))",
    )
    (project / "params" / "other" / "p.yaml").write_text("k: 5\n", encoding="utf-8")
    files = ("params/guide/p.yaml", "params/other/p.yaml")
    done = vrag(project, "run", *files, "--only", "01")
    assert done.returncode == 0, done.stdout + done.stderr
    for folder, k in (("guide", "2"), ("other", "5")):
        written = project / "figures" / folder / "01_one.csv"
        assert written.read_text(encoding="utf-8") == k
        copies = project / "runs" / folder / "p" / folder
        assert {file.suffix for file in copies.glob("01_one.*")} >= {".ipynb", ".log", ".json"}
    assert vrag(project, "run", *files, "--only", "01").stdout.count("unchanged since") == 2
    assert "[other/01_one] done" in done.stdout


def test_a_parameter_file_says_which_notebooks_it_is_for(project: Path) -> None:
    notebook(project / "notebooks" / "00_tour.ipynb", "seed = 0", "print('seed', seed)")
    mine = project / "mine.yaml"
    mine.write_text("notebooks: [00_tour, guide]\nseed: 3\n", encoding="utf-8")
    done = vrag(project, "run", "mine.yaml", "--only", "00")
    assert "[00_tour] seed 3" in done.stdout
    assert (project / "runs" / "mine" / "00_tour.ipynb").is_file()
    for line, words in (
        ("", "Give it a line like `notebooks: [guide]`"),
        ("notebooks: [gide]", "'gide', which is neither a notebook nor a folder"),
        ("notebooks: [gide]", "Did you mean 'guide'?"),
        ("notebooks: [zzzz]", "There are:\n  guide\n  00_tour\n  guide/01_one\n"),
        ("notebooks: [guide/0]", "say which:\n  guide/01_one\n  guide/02_two"),
        ("notebooks: guide", "notebooks is 'guide', and no list. Write it as `notebooks: [guide]`"),
        ("notebook: [guide]", "Did you mean `notebooks` by 'notebook'?"),
    ):
        mine.write_text(f"{line}\nk: 3\n", encoding="utf-8")
        refused = vrag(project, "run", "mine.yaml")
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize("entry", ["02", '"02"', "2", "two", "guide/02", "02_two"])
def test_a_notebook_may_be_called_by_its_number_or_a_part_of_its_name(
    project: Path, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    mine = project / "mine.yaml"
    mine.write_text(f"notebooks: [{entry}]\n", encoding="utf-8")
    assert [book.stem for book in read_plan(mine).given] == ["02_two"]


def test_the_check_calls_folders_what_the_parameters_call_them(project: Path) -> None:
    notebook(
        project / "notebooks" / "guide" / "01_one.ipynb",
        "built_dir = 'data/things'\nk = 1",
        "open(f'{built_dir}/annotations.jsonl')",
    )
    done = vrag(project, "check", "params/guide/p.yaml")
    assert "'data/things/annotations.jsonl'" in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_mistyped_suite_is_named_before_a_notebook_begins(project: Path, command: str) -> None:
    begun = project / "figures" / "guide" / "begun"
    writes = f"from pathlib import Path\nPath({str(begun)!r}).touch()"
    notebook(
        project / "notebooks" / "guide" / "01_one.ipynb", "suite = 'suite-drawn-small'", writes
    )
    values = project / "params" / "guide" / "p.yaml"
    values.write_text("suite: suite-drwn\n", encoding="utf-8")
    refused = vrag(project, command, "params/guide/p.yaml")
    assert refused.returncode == 2
    assert "params/guide/p.yaml: suite is 'suite-drwn'; expected 'suite-drawn'" in refused.stderr
    assert "Did you mean 'suite-drawn'?" in refused.stderr
    assert not begun.exists()


def test_a_changed_input_file_runs_the_notebook_again(project: Path) -> None:
    (project / "rows.txt").write_text("old", encoding="utf-8")
    (project / "params" / "guide" / "p.yaml").write_text(
        f"source: {project / 'rows.txt'}\n", encoding="utf-8"
    )
    vrag(project, "run", "params/guide/p.yaml", "--only", "02")
    (project / "rows.txt").write_text("new", encoding="utf-8")
    vrag(project, "run", "params/guide/p.yaml", "--only", "02")
    assert (project / "figures" / "guide" / "02_two.csv").read_text(encoding="utf-8") == "new"


def test_changed_code_of_the_package_runs_the_notebook_again(project: Path) -> None:
    """What a notebook is known by, told by a copy of the package before and after a change."""
    package = project / "copy" / "vrag_kit"
    ignored = shutil.ignore_patterns("weights", "tables", "__pycache__")
    shutil.copytree(ROOT / "vrag_kit", package, ignore=ignored)
    known_by = (
        "from pathlib import Path; from vrag_kit.runner.finished import ingredients;"
        "print(ingredients(Path('notebooks/guide/01_one.ipynb').absolute(), {}, {})['code'])"
    )

    def code() -> str:
        environment = {**os.environ, "PYTHONPATH": str(package.parent)}
        command = [sys.executable, "-c", known_by]
        return subprocess.check_output(command, cwd=project, env=environment, text=True)

    before = code()
    assert before == code()
    with (package / "analysis" / "accuracy.py").open("a", encoding="utf-8") as file:
        file.write("\nANOTHER = 1\n")
    assert before != code()


def test_a_failing_cell_is_named_and_the_other_notebooks_still_run(project: Path) -> None:
    notebook(
        project / "notebooks" / "guide" / "01_one.ipynb",
        "k = 1",
        "# NBVAL_CHECK_OUTPUT\n\nratio = 1 / (k - 2)\nprint(ratio)",
    )
    done = vrag(project, "run", "params/guide/p.yaml")
    assert done.returncode == 1
    assert "cell 2 `ratio = 1 / (k - 2)`: ZeroDivisionError" in done.stdout
    (log,) = project.rglob("01_one.log")
    assert f"; see {log}" in done.stdout
    assert (project / "figures" / "guide" / "02_two.csv").exists()
    assert "failed" in done.stdout.splitlines()[-2]


def test_a_kernel_that_dies_is_reported_with_its_cell(project: Path) -> None:
    notebook(project / "notebooks" / "guide" / "01_one.ipynb", "k = 1", "import os\nos._exit(9)")
    done = vrag(project, "run", "params/guide/p.yaml", "--only", "01")
    assert done.returncode == 1
    assert "cell 2 `import os`: the kernel died" in done.stdout


def kernel_that_dies_at_first(project: Path, times: int) -> dict[str, str]:
    """The environment in which the kernel of 01_one dies `times` times as it starts."""
    kernel = project / "jupyter" / "kernels" / "late"
    kernel.mkdir(parents=True)
    starts = kernel / "starts"
    program = (
        f"import pathlib, sys; starts = pathlib.Path({str(starts)!r}); starts.touch();"
        f" starts.write_text(starts.read_text() + '.');"
        f" sys.exit(1) if len(starts.read_text()) <= {times} else None;"
        " from ipykernel import kernelapp; kernelapp.launch_new_instance()"
    )
    argv = [sys.executable, "-c", program, "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Late", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    path = project / "notebooks" / "guide" / "01_one.ipynb"
    book = nbformat.read(path, as_version=4)
    book.metadata["kernelspec"] = {"name": "late", "display_name": "Late", "language": "python"}
    nbformat.write(book, path)
    return {**os.environ, "JUPYTER_PATH": str(project / "jupyter")}


@pytest.mark.parametrize(("times", "status"), [(1, 0), (2, 0), (3, 1)])
def test_a_kernel_that_dies_as_it_starts_is_started_again(
    project: Path, times: int, status: int
) -> None:
    env = kernel_that_dies_at_first(project, times)
    done = vrag(project, "run", "params/guide/p.yaml", "--only", "01", env=env)
    assert done.returncode == status, done.stdout
    assert done.stdout.count("it is started again") == min(times, 2)
    assert (project / "figures" / "guide" / "01_one.csv").exists() == (status == 0)


KILL = "import os, signal, time\nos.kill({}, signal.SIGKILL)\ntime.sleep(5)"
HALF = "import pathlib\npathlib.Path('runs/guide/p/guide/03_three.ipynb').write_text('{')\n"
"""The copy is as half written as papermill would leave it."""


@pytest.mark.skipif(memory_kills() is None, reason="needs a system that tells of its memory")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_is_killed_is_named_and_does_not_take_the_run_with_it(
    project: Path, jobs: str
) -> None:
    books = project / "notebooks" / "guide"
    notebook(books / "01_one.ipynb", "k = 1", KILL.format("os.getpid()"))
    notebook(books / "03_three.ipynb", "k = 1", HALF + KILL.format("os.getppid()"))
    done = vrag(project, "run", "params/guide/p.yaml", "--jobs", jobs)
    assert done.returncode == 1, done.stderr
    assert (project / "figures" / "guide" / "02_two.csv").exists()
    one, two, three = done.stdout.splitlines()[-3:]
    assert one.split()[:2] == ["guide/01_one", "failed"]
    assert "`: the kernel died, and not for want of memory" in one
    assert two.split()[:2] == ["guide/02_two", "done"]
    assert three.split()[:2] == ["guide/03_three", "failed"]
    assert "papermill was killed by signal 9 (Killed), and not for want of memory; see " in three


def test_where_memory_was_short_or_nobody_can_tell_that_is_said_with_a_perhaps(
    tmp_path: Path,
) -> None:
    said = why_it_failed(tmp_path / "01_one.ipynb", -9, starved=True)
    assert said.startswith("papermill was killed by signal 9 (Killed), perhaps out of memory; see")


def test_a_file_of_many_gigabytes_is_not_read_to_tell_whether_it_changed(project: Path) -> None:
    pictures = project / "imgs.tsv"
    with pictures.open("wb") as file:
        file.truncate(200 * 2**30)  # of which no byte is on the disk
    notebook(project / "notebooks" / "guide" / "02_two.ipynb", "webqa = ''", "print('done')")
    values = project / "params" / "guide" / "p.yaml"
    source = f"{{name: many, annotations: none.json, images: {pictures}}}"
    values.write_text(f"webqa: {source}\n", encoding="utf-8")
    first = vrag(project, "run", "params/guide/p.yaml", "--only", "02")
    assert "[guide/02_two] done" in first.stdout, first.stdout + first.stderr
    again = vrag(project, "run", "params/guide/p.yaml", "--only", "02")
    assert "unchanged since its last run" in again.stdout
    pictures.touch()
    assert "done in" in vrag(project, "run", "params/guide/p.yaml", "--only", "02").stdout


@pytest.fixture
def mappings(project: Path) -> Path:
    """A notebook with two mappings; its parameter file."""
    how = "run_with = {'device': 'cpu', 'batch_size': 32}\nweb = {'image_k': 30, 'web_k': 50}"
    notebook(project / "notebooks" / "guide" / "01_one.ipynb", how, "print(run_with, web)")
    return project / "params" / "guide" / "p.yaml"


def test_what_a_file_gives_of_a_mapping_leaves_the_rest(project: Path, mappings: Path) -> None:
    given = "run_with: {batch_size: 2, retry_failures: false}\nweb: {web_k: 5}\n"
    mappings.write_text(given, encoding="utf-8")
    done = vrag(project, "run", "params/guide/p.yaml", "--only", "01")
    assert "{'device': 'cpu', 'batch_size': 2, 'retry_failures': False}" in done.stdout
    assert "{'image_k': 30, 'web_k': 5}" in done.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("run_with: {device: cpu, batch: 2}", ["declares 'batch' in its run_with"]),
        ("run_with: {batch_size: many}", ["run_with: batch_size is 'many' (str)", "int"]),
        ("run_with: 3", ["run_with is 3 (int)", "In YAML: run_with: {device: …}"]),
        ("web: {image_kk: 1}", ["declares 'image_kk' in its web. Did you mean 'image_k'?"]),
    ],
)
def test_a_mapping_of_what_goes_together_is_checked_key_by_key(
    project: Path, mappings: Path, content: str, words: list[str]
) -> None:
    mappings.write_text(content, encoding="utf-8")
    refused = vrag(project, "run", "params/guide/p.yaml")
    assert refused.returncode == 2
    for word in words:
        assert word in refused.stderr


def test_prompts_may_be_a_list_of_names_where_a_notebook_has_one(project: Path) -> None:
    notebook(project / "notebooks" / "guide" / "01_one.ipynb", "prompts = ['a']", "print(prompts)")
    values = project / "params" / "guide" / "p.yaml"
    values.write_text("prompts: [b, c]\n", encoding="utf-8")
    done = vrag(project, "run", "params/guide/p.yaml", "--only", "01")
    assert "['b', 'c']" in done.stdout
    values.write_text("prompts: {a: b}\n", encoding="utf-8")
    refused = vrag(project, "run", "params/guide/p.yaml")
    assert "prompts is {'a': 'b'} (dict), but 01_one.ipynb expects list" in refused.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("kk: 2\n", ["no notebook declares 'kk'", "figures_dir, k, share, source"]),
        ("k: ten\n", ["k is 'ten' (str)", "01_one.ipynb expects int, as in k = 1"]),
        ("k: [\n", ["p.yaml line 2", "not YAML"]),
        ("- k\n", ["found a list"]),
    ],
)
def test_a_bad_parameter_file_is_refused_before_anything_runs(
    project: Path, content: str, words: list[str]
) -> None:
    (project / "params" / "guide" / "p.yaml").write_text(content, encoding="utf-8")
    done = vrag(project, "run", "params/guide/p.yaml")
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr
    assert not list((project / "figures" / "guide").iterdir())


def test_a_whole_number_fits_a_parameter_that_is_a_fraction(project: Path) -> None:
    (project / "params" / "guide" / "p.yaml").write_text("share: 1\n", encoding="utf-8")
    assert vrag(project, "run", "params/guide/p.yaml").returncode == 0


def test_unknown_files_notebooks_and_job_counts_are_refused(project: Path) -> None:
    assert (
        "no such parameter file. Found here: params/guide/p.yaml"
        in vrag(project, "run", "params/guide/q.yaml").stderr
    )
    assert "no notebook '07'" in vrag(project, "run", "params/guide/p.yaml", "--only", "07").stderr
    assert "--jobs is 0" in vrag(project, "run", "params/guide/p.yaml", "--jobs", "0").stderr


def test_two_jobs_do_what_one_does(project: Path) -> None:
    assert vrag(project, "run", "params/guide/p.yaml", "--jobs", "2").returncode == 0
    assert sorted(path.name for path in (project / "figures" / "guide").iterdir()) == [
        "01_one.csv",
        "02_two.csv",
    ]


def test_the_command_line_loads_no_model_library() -> None:
    heavy = "{'torch', 'transformers', 'datasets', 'openai'} & set(sys.modules)"
    for module in ("cli", "notebooks", "report"):
        code = f"import sys, vrag_kit.runner.{module}; assert not {heavy}, {heavy}"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_version_and_the_help_of_commands_are_told(project: Path) -> None:
    told = vrag(project, "--version")
    assert (told.returncode, told.stdout) == (0, f"vrag_kit {version('vrag_kit')}\n")
    for width in ("80", "100"):
        lines = vrag(project, "--help", env={**os.environ, "COLUMNS": width}).stdout.splitlines()
        (at,) = [number for number, line in enumerate(lines) if line.startswith("│ run ")]
        first, second = (line.strip("│ ").split() for line in lines[at : at + 2])
        # the first line holds all that has room in it
        assert len(f"│ run       {' '.join(first[1:])} {second[0]} │") > int(width)


def test_check_lists_problems_and_exits_with_1(project: Path) -> None:
    (project / "rows.jsonl").write_text("{\n", encoding="utf-8")
    done = vrag(project, "check", "rows.jsonl", ".")
    assert (done.returncode, "line 1" in done.stdout, "not JSON" in done.stdout) == (1, True, True)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_a_runs_folder_that_cannot_be_written_is_an_error(project: Path) -> None:
    (project / "runs").write_text("in the way", encoding="utf-8")
    done = vrag(project, "run", "params/guide/p.yaml")
    assert (done.returncode, "cannot be written" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["check", "forecast", "run"])
@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("rows.txt", "found rows.txt, which is no folder"),
        ("rows.txt/deeper/figures", "found rows.txt, which is no folder"),
        ("/proc/figures", "found /proc, which takes no file"),
        ("read-only", "found read-only, which takes no file"),
    ],
)
def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(
    command: str, folder: str, found: str, project: Path
) -> None:
    if folder.startswith("/proc") and not Path("/proc/self").exists():
        pytest.skip("needs Linux")
    if folder == "read-only" and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (project / "rows.txt").write_text("in the way", encoding="utf-8")
    (project / "read-only").mkdir(mode=0o555)
    values = project / "params" / "guide" / "p.yaml"
    values.write_text(f"figures_dir: {folder}\n", encoding="utf-8")
    done = vrag(project, command, "params/guide/p.yaml")
    told = done.stdout + done.stderr
    assert done.returncode == {"check": 1, "forecast": 1, "run": 2}[command], told
    assert f"figures_dir is '{folder}', which cannot be written: {found}" in told
    assert not (project / "runs").exists()


def test_a_check_of_folders_that_are_not_there_yet_makes_none(project: Path) -> None:
    values = project / "params" / "guide" / "p.yaml"
    values.write_text("figures_dir: some/new/folder\n", encoding="utf-8")
    before = {path: path.stat().st_mtime_ns for path in sorted(project.rglob("*"))}
    done = vrag(project, "check", "params/guide/p.yaml")
    assert "cannot be written" not in done.stdout
    assert {path: path.stat().st_mtime_ns for path in sorted(project.rglob("*"))} == before


ASKING = """
from vrag_kit.generation import AnswerStore, ask_prompts, load_generator
from vrag_kit.judging import load_judge
from vrag_kit.types import Message
from vrag_kit.workspace import path
prompts = [(Message(role="user", parts=(f"{words}?",)),) for words in ("good", "odd")]
for entry in [*models, judge]:
    with AnswerStore(path(answers_dir) / "answers.sqlite") as store:
        print(ask_prompts(load_generator(entry), prompts, store))
"""


def test_a_header_of_a_model_and_of_a_judge_is_in_no_file_of_a_run(project: Path) -> None:
    notebook(
        project / "notebooks" / "guide" / "01_one.ipynb",
        "models = []\njudge = 'rule'\nanswers_dir = 'runs/answers'",
        ASKING,
    )
    secret = "tk-Lorem1psum2dolor"
    values = project / "params" / "guide" / "p.yaml"
    env = {name: value for name, value in os.environ.items() if name != "GATEWAY"}
    with StrangeServer({"odd": [f"status 500 {secret}"]}) as server:
        server.wants = {"X-Token": f"Bearer {secret}"}
        how = "decoding: greedy, retries: 0, headers: {X-Token: Bearer $GATEWAY}"
        entries = [f"{{model: '{name}@{server.url}', {how}}}" for name in ("a", "b")]
        values.write_text(f"models: [{entries[0]}]\njudge: {entries[1]}\n", encoding="utf-8")
        arguments = ("params/guide/p.yaml", "--only", "01")
        checked = vrag(project, "check", *arguments, env=env)
        assert checked.returncode == 1, checked.stdout + checked.stderr
        for name in ("model 'a'", "judge 'b'"):
            assert f"missing: {name}: the key for {server.url} is not in" in checked.stdout
        assert checked.stdout.count("`export GATEWAY=…`") == 2
        assert server.requests == []
        done = vrag(project, "run", *arguments, env={**env, "GATEWAY": secret})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "HTTP 500: …" in done.stdout
        assert len(server.requests) == 6  # a trial, and two questions, of each
    files = [file for file in project.rglob("*") if file.is_file()]
    holding = [file for file in files if secret[3:].encode() in file.read_bytes()]
    assert (holding, secret[3:] in done.stdout + done.stderr) == ([], False)
    assert {"answers.sqlite", "01_one.ipynb", "01_one.parameters.yaml", "01_one.log"} <= {
        file.name for file in files
    }
