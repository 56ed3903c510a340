"""JupyterLab in Debian's Chromium, for tests of what a person sees and clicks: a
server, a browser, and `Lab`, a page that shows one notebook.

A test asks for the fixture `lab` (conftest.py); its notebook lies in the test's own
`tmp_path`, where its kernel also works:

    def test_the_panel_counts_clicks(lab: Lab, tmp_path: Path) -> None:
        lab.open_notebook(["from panels import panel", "panel('clicks.txt')"])
        lab.run_all()
        lab.page.get_by_role("button", name="more").click()
        lab.until(lambda: (tmp_path / "clicks.txt").exists(), "the click is on disk")
        lab.screenshot("panel")
        assert lab.save().stat().st_size < 300_000
        assert lab.complaints() == []

A cell "markdown: ..." is a markdown cell; `run_all` raises with the error of a cell
that failed; `page` is Playwright's: mouse, keyboard, locators; a screenshot is a PNG in
tmp_path, or in the folder that VRAG_SCREENSHOTS names; complaints are the errors of the
browser's console.

A page lives for one test, with a fresh workspace and settings. `lab.page.set_viewport_size`
changes its looks, `lab.reload()` is what F5 does, with the kernel kept.
Wait for conditions (`until`, Playwright's `wait_for`), never for a time. Without
Chromium or JupyterLab these tests are skipped; where VRAG_BROWSER names a browser, they
run.
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 120  # seconds, for anything; only a failure takes so long
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HARMLESS = ("favicon", "ResizeObserver loop")  # in the console of any JupyterLab
NEWS = "@jupyterlab/apputils-extension/notification.jupyterlab-settings"


def missing() -> str:
    """Why the browser tests cannot run here; "" if they can, or must."""
    if os.environ.get("VRAG_BROWSER"):
        return ""
    for name in ("playwright", "jupyterlab"):
        if importlib.util.find_spec(name) is None:
            return f"browser tests need {name}: pip install -e '.[notebooks,tests]'"
    if shutil.which("chromium"):
        return ""
    return (
        "browser tests need Chromium: apt-get install chromium fonts-dejavu-core, or set"
        " VRAG_BROWSER to a browser's path"
    )


class Server:
    """A JupyterLab server that shows the files below `root`; its settings lie in
    `home`, a user's own are neither read nor changed.
    """

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.home = home
        self.log = home / "server.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        folders = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "IPYTHONDIR": "ipython",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
        options = {
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.port": self.port,
            "ServerApp.port_retries": 0,
            "ServerApp.root_dir": root,
            "ServerApp.open_browser": False,
            "ServerApp.allow_root": True,
            "ServerApp.terminals_enabled": False,
            "IdentityProvider.token": "",
            "LabApp.news_url": None,
            "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
            "LabApp.extension_manager": "readonly",
            "LabApp.expose_app_in_browser": True,
        }
        self.reset()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "jupyterlab",
                    *(f"--{name}={value}" for name, value in options.items()),
                ],
                cwd=root,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**kept, **{name: str(home / folder) for name, folder in folders.items()}},
            )

    def reset(self) -> None:
        """Settings as in a fresh installation, but for the question whether one wants
        news.
        """
        shutil.rmtree(self.home / "settings", ignore_errors=True)
        (self.home / "settings" / NEWS).parent.mkdir(parents=True)
        (self.home / "settings" / NEWS).write_text('{"fetchNews": "false"}', encoding="utf-8")

    def wait(self) -> None:
        """Until it answers."""
        end = time.monotonic() + PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(
                    f"JupyterLab does not answer (status {self.process.poll()}); its log ends"
                    f" with\n{self.last_words()}"
                )
            time.sleep(0.1)

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:])

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/api/status")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


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
        page.on(
            "console",
            lambda message: self._console.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: self._console.append(str(error)))

    def open_notebook(self, cells: Sequence[str]) -> None:
        """Write a notebook of these cells and open it, with a kernel that is ready."""
        new = nbformat.v4
        written = []
        for cell in cells:
            if cell.startswith("markdown: "):
                written.append(new.new_markdown_cell(cell.removeprefix("markdown: ")))
            else:
                written.append(new.new_code_cell(cell))
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(new.new_notebook(cells=written, metadata={"kernelspec": kernel}), self.path)
        self._start()
        self._open()
        self.page.wait_for_function(
            f"() => {NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'"
        )

    def reload(self) -> None:
        """As F5 does; the kernel goes on."""
        self.page.reload()
        self.page.wait_for_function(
            f"() => {NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'"
        )

    def run_all(self) -> None:
        """Run all cells; raises with the error of one that failed."""
        self.command("notebook:run-all-cells")
        for output in self.outputs():
            if output["output_type"] == "error":
                raise AssertionError(
                    f"a cell failed: {output['ename']}: {output['evalue']}\n"
                    + "\n".join(output["traceback"])
                )

    def outputs(self) -> list[dict[str, Any]]:
        """All outputs of all code cells, as a notebook file has them."""
        return self.page.evaluate(
            f"() => {NOTEBOOK}.content.widgets.flatMap(cell => cell.model.type === 'code' ?"
            " cell.model.outputs.toJSON() : [])"
        )

    def save(self) -> Path:
        """Save the notebook; returns its file."""
        self.command("docmanager:save")
        return self.path

    def command(self, name: str, **arguments: object) -> None:
        """Let JupyterLab do one of its commands, and wait until it is done."""
        self.page.evaluate(
            """([name, given]) => {
            window.done = null;
            window.jupyterapp.commands.execute(name, given).then(
                () => { window.done = 'well'; },
                error => { window.done = String(error); },
            );
        }""",
            [name, arguments],
        )
        result = self.page.wait_for_function("() => window.done").json_value()
        assert result == "well", f"{name}: {result}"

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until `condition` holds, letting the browser go on meanwhile; raises
        with `what` was awaited, a screenshot and the logs.
        """
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(
                    f"waited {PATIENCE} s in vain until {what}\n{self.screenshot('in_vain')}\n"
                    + "\n".join([*self._console, self.server.last_words()])
                )
            self.page.wait_for_timeout(50)

    def focus_is(self, name: str) -> None:
        """Wait until the focus is on the element of that label or text. Focus moves after
        what moves it, such as the closing of a dialog, has been seen to happen.
        """
        held = "() => document.activeElement.ariaLabel ?? document.activeElement.innerText"
        self.until(lambda: self.page.evaluate(held) == name, f"the focus is on {name!r}")

    def screenshot(self, name: str) -> Path:
        folder = Path(os.environ.get("VRAG_SCREENSHOTS") or self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=folder / f"{name}.png")
        return folder / f"{name}.png"

    def complaints(self) -> list[str]:
        """What the browser's console holds of errors, but for those of JupyterLab's own
        that do no harm.
        """
        return [text for text in self._console if not any(words in text for words in HARMLESS)]

    def shut_down(self) -> None:
        """Shut all kernels down."""
        self.page.evaluate("() => window.jupyterapp?.serviceManager.sessions.shutdownAll()")

    def leave(self) -> None:
        """Ask for the end of the notebook's kernel, which takes a second, and do not wait."""
        running = "[...(window.jupyterapp?.serviceManager.sessions.running() ?? [])].length"
        if not self.page.evaluate(f"() => {running}"):
            return
        with self.page.expect_request(lambda request: request.method == "DELETE"):
            self.page.evaluate("() => { window.jupyterapp.serviceManager.sessions.shutdownAll(); }")

    def _start(self) -> None:
        self.page.goto(f"{self.server.url}/lab?reset")
        self.page.wait_for_function(
            "() => window.jupyterapp?.started.then(() => window.jupyterapp.restored).then(() =>"
            " true)"
        )

    def _open(self) -> None:
        self.command(
            "docmanager:open",
            path=str(self.path.relative_to(self.server.root)),
            factory="Notebook",
        )
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell")


NOTEBOOK = "window.jupyterapp?.shell.currentWidget"


@contextmanager
def serve(root: Path, home: Path) -> Iterator[Server]:
    """A running server."""
    server = Server(root, home)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser.

    While it runs, this thread counts as inside an event loop, so that `asyncio.run` is
    refused: keep it no longer than needed.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("VRAG_BROWSER") or shutil.which("chromium"), args=FLAGS
        )
        yield browser
        browser.close()


@contextmanager
def lab_page(server: Server, browser: Browser, folder: Path) -> Iterator[Lab]:
    """A fresh page; its kernels end with it."""
    server.reset()
    with browser.new_context(viewport={"width": 1500, "height": 1000}) as context:
        lab = Lab(server, context.new_page(), folder)
        yield lab
        lab.leave()
