"""What is lost when one process of a run is killed: `python -m tests.timing.kills [SEED]`.

Two notebooks of the small Field Guide run at once, with a model that writes down each
prompt that it is asked. In fresh runs the runner, papermill, or a kernel is killed alone,
by each of three signals, at a random time. Then no process may be left, the summary names
what died, and the next run ends with the same tables, having asked nothing again but the
batch that was asked when the process was killed.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).parents[2]
MARK = "VRAG_KILLS"
"""A variable by which all processes of a run are known."""
BATCH = 8
MODEL = """import hashlib
import time


class Slow:
    batched = True

    def generate(self, prompts):
        time.sleep(0.2)
        names = [hashlib.sha256(repr(each).encode()).hexdigest() for each in prompts]
        with open("asked.txt", "a", encoding="utf-8") as file:
            file.writelines(f"{name}\\n" for name in names)
        return [f"Answer: {len(repr(each)) % 7}" for each in prompts]
"""
NOTEBOOKS = ("visual_rag/03_baselines", "visual_rag/07_easy_negatives")
KINDS = ("the runner", "papermill", "a kernel")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)


def project(folder: Path) -> Path:
    """A project with a parameter file of two notebooks."""
    shutil.copytree(ROOT / "notebooks", folder / "notebooks")
    shutil.copytree(ROOT / "data/field-guide-small", folder / "data/field-guide-small")
    (folder / "mine.py").write_text(MODEL, encoding="utf-8")
    (folder / "params/visual_rag").mkdir(parents=True)
    told = {
        "notebooks": list(NOTEBOOKS),
        "models": ["mine:Slow"],
        "hardware": {"batch_size": BATCH},
        "figures_dir": "figures",
    }
    (folder / "params/visual_rag/p.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    return folder


def start(folder: Path) -> subprocess.Popen[str]:
    """A run of it, of two notebooks at once."""
    command = [sys.executable, "-m", "vrag_kit.runner.cli", "run", "params/visual_rag/p.yaml"]
    return subprocess.Popen(
        [*command, "--jobs", "2"],
        cwd=folder,
        env={**os.environ, MARK: str(folder), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def alive(folder: Path) -> list[psutil.Process]:
    """All processes of a project's run."""
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if each.environ().get(MARK) == str(folder) and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found


def kinds(runner: int) -> dict[str, list[psutil.Process]]:
    """The processes of a run by what they are."""
    papermills = psutil.Process(runner).children()
    kernels = []
    for each in papermills:
        with suppress(psutil.Error):
            kernels += each.children(recursive=True)
    return dict(zip(KINDS, ([psutil.Process(runner)], papermills, kernels), strict=True))


def asked(folder: Path) -> list[str]:
    """The prompts that the model was asked, again and again if so."""
    file = folder / "asked.txt"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def tables(folder: Path) -> dict[str, str]:
    """Hash of every table."""
    files = sorted((folder / "figures").rglob("*.csv"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def kill_one(folder: Path, kind: str, how: signal.Signals, wait: float) -> list[str]:
    """Kill one process of a kind; returns what is wrong, and prints what was said."""
    run = start(folder)
    while not asked(folder) and run.poll() is None:
        time.sleep(0.02)
    time.sleep(wait)
    if victims := kinds(run.pid)[kind]:
        victims[0].send_signal(how)
    said = run.communicate()[0]
    deadline = time.monotonic() + 10
    while (left := alive(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    print(f"{kind} by {how.name} after {wait:.1f} s, {len(asked(folder))} asked")
    print("    " + "\n    ".join(said.rstrip().splitlines()[-2:]), flush=True)
    wrong = [f"left: {each.pid} {each.cmdline()}" for each in left]
    for each in left:
        each.kill()
    again = start(folder)
    if (ended := again.communicate()[0]) and again.returncode:
        wrong.append(f"the next run failed: {ended[-2000:]}")
    if (twice := sum(n - 1 for n in Counter(asked(folder)).values())) > 2 * BATCH:
        wrong.append(f"{twice} asked twice")
    return wrong


def main() -> None:
    """Every kind by every signal."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also under `nohup`, for all that is started
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    with tempfile.TemporaryDirectory() as folder:
        whole = project(Path(folder, "whole"))
        run = start(whole)
        said = run.communicate()[0]
        assert run.returncode == 0, said
        print(f"{len(asked(whole))} prompts in a whole run", flush=True)
        bad = 0
        for kind in KINDS:
            for how in SIGNALS:
                place = project(Path(folder, f"{kind} {how.name}"))
                wrong = kill_one(place, kind, how, rng.uniform(0, 3))
                if tables(place) != tables(whole):
                    wrong.append("other tables than a whole run's")
                print("    " + ("; ".join(wrong) or "all well"), flush=True)
                bad += bool(wrong)
    sys.exit(bad)


if __name__ == "__main__":
    main()
