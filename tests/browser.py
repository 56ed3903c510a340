"""JupyterLab in Chromium, for tests of what a person sees and clicks: a server, a browser, and
`Lab`, a page that shows one notebook.

A test asks for the fixture `lab` (conftest.py); its notebook lies in the test's own `tmp_path`,
where its kernel also works:

    def test_the_panel_counts_clicks(lab: Lab, tmp_path: Path) -> None:
        lab.open_notebook("from panels import panel\\npanel('clicks.txt')")
        lab.run_all()
        lab.page.get_by_role("button", name="more").click()
        lab.until(lambda: (tmp_path / "clicks.txt").exists(), "the click is on disk")
        assert lab.complaints() == []

`lab.page` is Playwright's: mouse, keyboard, locators. Wait for conditions (`until`, Playwright's
`wait_for`), never for a time. Without Chromium or JupyterLab these tests are skipped; where
VRAG_BROWSER names a browser, they run.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 120  # seconds, for anything; only a failure takes so long
HARMLESS = ("favicon", "ResizeObserver loop")  # in the console of any JupyterLab
NOTEBOOK = "window.jupyterapp?.shell.currentWidget"
IDLE = f"() => {NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'"
STARTED = "() => window.jupyterapp?.started.then(() => jupyterapp.restored).then(() => true)"
COMMAND = "([name, given]) => jupyterapp.commands.execute(name, given).then(() => 'well', String)"
NEWS = ".jupyter/lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"


def missing() -> str:
    """Why the browser tests cannot run here; "" if they can, or must."""
    if os.environ.get("VRAG_BROWSER"):
        return ""
    if not all(map(importlib.util.find_spec, ("playwright", "jupyterlab"))):
        return "browser tests need: pip install -e '.[notebooks,tests]'"
    if shutil.which("chromium"):
        return ""
    return "browser tests need Chromium: apt-get install chromium fonts-dejavu-core"


@dataclass(frozen=True)
class Server:
    """A running JupyterLab server that shows the files below `root`."""

    root: Path
    url: str
    log: Path

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:])


@contextmanager
def serve(root: Path, home: Path) -> Iterator[Server]:
    """A server whose settings lie in `home`; a user's own are neither read nor changed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": root,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": "",
        "LabApp.news_url": None,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.expose_app_in_browser": True,
    }
    (home / NEWS).parent.mkdir(parents=True)
    (home / NEWS).write_text('{"fetchNews": "false"}', encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    arguments = [f"--{name}={value}" for name, value in options.items()]
    server = Server(root, f"http://127.0.0.1:{port}", home / "server.log")
    with server.log.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *arguments],
            **{"cwd": root, "stdout": log, "stderr": log, "env": {**kept, "HOME": str(home)}},
        )
    try:
        _wait(server, process)
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{server.url}/api/status", timeout=5)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"JupyterLab does not answer; its log ends with\n{server.last_words()}")


class Lab:
    """A page of JupyterLab with one notebook, `folder`/notebook.ipynb.

    `page` is Playwright's.
    """

    def __init__(self, server: Server, page: Page, folder: Path) -> None:
        self.server = server
        self.page = page
        self.folder = folder
        self.path = folder / "notebook.ipynb"
        self._console: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", lambda each: each.type == "error" and self._console.append(each.text))
        page.on("pageerror", lambda error: self._console.append(str(error)))

    def open_notebook(self, cell: str) -> None:
        """Write a notebook of one cell and open it, with a kernel that is ready."""
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        cells = [nbformat.v4.new_code_cell(cell)]
        book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
        nbformat.write(book, self.path)
        self.page.goto(f"{self.server.url}/lab?reset")
        self.page.wait_for_function(STARTED)
        path = str(self.path.relative_to(self.server.root))
        self.command("docmanager:open", path=path, factory="Notebook")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
        self.page.wait_for_function(IDLE)

    def reload(self) -> None:
        """As F5 does; the kernel goes on."""
        self.page.reload()
        self.page.wait_for_function(IDLE)

    def run_all(self) -> None:
        """Run all cells; raises with the error of one that failed."""
        self.command("notebook:run-all-cells")
        for output in self.outputs():
            assert output["output_type"] != "error", "\n".join(output["traceback"])

    def outputs(self) -> list[dict[str, Any]]:
        """All outputs of all code cells, as a notebook file has them."""
        outputs = "cell => cell.model.type === 'code' ? cell.model.outputs.toJSON() : []"
        return self.page.evaluate(f"() => {NOTEBOOK}.content.widgets.flatMap({outputs})")

    def save(self) -> Path:
        """Save the notebook; returns its file."""
        self.command("docmanager:save")
        return self.path

    def command(self, name: str, **arguments: object) -> None:
        """Let JupyterLab do one of its commands, and wait until it is done."""
        result = self.page.evaluate(COMMAND, [name, arguments])
        assert result == "well", f"{name}: {result}"

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until `condition` holds, letting the browser go on meanwhile; raises with `what` was
        awaited, a screenshot and the logs.
        """
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                screenshot = self.folder / "in_vain.png"
                self.page.screenshot(path=screenshot)
                logs = "\n".join([*self._console, self.server.last_words()])
                raise AssertionError(f"waited in vain until {what}\n{screenshot}\n{logs}")
            self.page.wait_for_timeout(50)

    def focus_is(self, name: str) -> None:
        """Wait until the focus is on the element of that label or text. Focus moves after
        what moves it, such as the closing of a dialog, has been seen to happen.
        """
        held = "() => document.activeElement.ariaLabel ?? document.activeElement.innerText"
        self.until(lambda: self.page.evaluate(held) == name, f"the focus is on {name!r}")

    def complaints(self) -> list[str]:
        """What the browser's console holds of errors, but for those of JupyterLab's own
        that do no harm.
        """
        return [text for text in self._console if not any(words in text for words in HARMLESS)]

    def shut_down(self) -> None:
        """Shut all kernels down."""
        self.page.evaluate("() => window.jupyterapp?.serviceManager.sessions.shutdownAll()")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser.

    While it runs, this thread counts as inside an event loop, so that `asyncio.run` is
    refused: keep it no longer than needed.
    """
    from playwright.sync_api import sync_playwright

    path = os.environ.get("VRAG_BROWSER") or shutil.which("chromium")
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-quic"]
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


@contextmanager
def lab_page(server: Server, browser: Browser, folder: Path) -> Iterator[Lab]:
    """A fresh page; its kernels end with it."""
    with browser.new_context(viewport={"width": 1500, "height": 1000}) as context:
        lab = Lab(server, context.new_page(), folder)
        yield lab
        lab.shut_down()
