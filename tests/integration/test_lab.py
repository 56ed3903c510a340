"""`make lab` opens the tour, whoever runs it, and on a port that is free."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import ROOT


@pytest.mark.slow
def test_the_address_that_make_lab_prints_is_the_tour_also_as_root_and_beside_another_lab(
    tmp_path: Path,
) -> None:
    ready = f"{sys.prefix}/.ready"  # no installation
    told = ["make", "--silent", "--old-file", ready, "lab", f"VENV={sys.prefix}"]
    home = {"HOME": str(tmp_path), "BROWSER": "true", "JUPYTER_PREFER_ENV_PATH": "1"}
    with socket.socket() as other:
        with suppress(OSError):  # taken already, which is the same
            other.bind(("127.0.0.1", 8888))
            other.listen()
        lab = subprocess.Popen(
            told,
            **{"cwd": ROOT, "env": {**os.environ, **home}, "stderr": subprocess.PIPE},
            text=True,
            start_new_session=True,
        )
        try:
            lines = (re.search(r"http://127\.0\.0\.1:(\d+)/\S+", line) for line in lab.stderr or ())
            address = next(filter(None, lines))
        finally:
            os.killpg(lab.pid, signal.SIGKILL)
            lab.communicate()
    assert "/lab/tree/00_tour.ipynb" in address[0]
    assert address[1] != "8888"
