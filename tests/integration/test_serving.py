"""A real `transformers serve` on this machine answers exactly as the same model does
here, pictures included.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import WEIGHTS

from vrag_kit.generation import ask_models, gt_clue, one_in_k, zero_shot
from vrag_kit.papers.visual_rag.judge import PROMPTS

MODEL = WEIGHTS / "field-guide-vlm-few"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The URL of a server that holds the demo's answerer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (tmp_path_factory.mktemp("serve") / "log").open("w+")
    serve = [str(Path(sys.executable).parent / "transformers"), "serve", str(MODEL)]
    place = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen([*serve, *place], stdout=log, stderr=log, env=env)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                assert process.poll() is None, (log.seek(0), log.read())[1]
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.slow
def test_served_answers_equal_local_ones(served, guide, at):
    # two of these questions silence this model among twenty images
    few = guide.subset([list(guide.queries)[place] for place in (0, 1, 2, 3, 11, 14)])
    contexts = zero_shot(few) + gt_clue(few, draws=1) + one_in_k(few, ks=[5, 20], draws=1)
    remote = {"model": f"{MODEL}@{served}", "server": "transformers", "name": "served"}
    models, decoding = [str(MODEL), remote], {"temperature": 0, "max_new_tokens": 16}
    table = ask_models(models, few, contexts, at, prompts=PROMPTS, decoding=decoding)
    names = ("field-guide-vlm-few", "served")
    here, there = (table[table["model"] == name].reset_index(drop=True) for name in names)
    assert (there["status"] == here["status"]).all(), there["status"].unique()
    assert there["answer"].fillna("").tolist() == here["answer"].fillna("").tolist()
    assert here["answer"].nunique() > 3
    # among twenty images it sometimes says nothing, in both
    assert 0 < (here["status"] != "ok").sum() < 6
