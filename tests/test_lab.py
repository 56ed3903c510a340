"""`make lab` opens the tour, whoever runs it, and on a port that is free."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import ROOT


def status(address: str) -> int:
    """Of a page, from a server that says where it is a moment before it listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.mark.slow
def test_the_address_that_make_lab_prints_opens_the_tour_also_as_root_and_beside_another_lab(
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
            cwd=ROOT,
            env={**os.environ, **home},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            said: list[str] = []
            address = ""
            for line in lab.stderr or ():
                said.append(line)
                if found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line):
                    address = found[0]
                    break
            assert "/lab/tree/00_tour.ipynb" in address, "".join(said)
            assert ":8888/" not in address
            file = address.replace("/lab/tree/", "/api/contents/")
            for each in (address, file):
                assert status(each) == 200
        finally:
            os.killpg(lab.pid, signal.SIGKILL)
            lab.wait()
            if lab.stderr:
                lab.stderr.close()
