"""Archives, and a web server with one file that notes what it sent and can cut connections,
send slowly, stall, know no Range, answer 503, and replace the file.
"""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections.abc import Iterable

from local_server import Handler, LocalServer

Members = Iterable[tuple[str | tarfile.TarInfo, bytes]]


def packed(members: Members, mode: str = "w:gz") -> bytes:
    """A tar of these members; `mode` is that of `tarfile.open`."""
    file = io.BytesIO()
    options = {"compresslevel": 1} if mode == "w:gz" else {}
    with tarfile.open(fileobj=file, mode=mode, **options) as tar:
        for name, content in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


class _Handler(Handler):
    def do_GET(self) -> None:
        state, asked = self.owner, self.headers.get("Range", "")
        state.paths.append(self.path)
        state.agents.add(self.headers.get("User-Agent", ""))
        if "missing" in self.path or state.statuses:
            code = 404 if "missing" in self.path else state.statuses.pop(0)
            head = {"Location": state.location, "Retry-After": state.retry_after}
            return self.head(code, {"Content-Length": "0", **head})
        whole = not state.ranges or self.headers.get("If-Range", state.etag) != state.etag
        given = None if whole else re.fullmatch(r"bytes=(\d+)-(\d*)", asked)
        first = int(given[1]) if given else 0
        last = int(given[2]) if given and given[2] else len(state.data) - 1
        head = {"Content-Length": str(last - first + 1), "ETag": state.etag}
        if given:
            head["Content-Range"] = f"bytes {first}-{last}/{len(state.data)}"
        self.head(206 if given else 200, head)
        if asked == "bytes=0-0":
            return None
        state.starts.append(first)
        return self._send(state.data[first : last + 1], state.cuts.pop(0) if state.cuts else None)

    def _send(self, data: bytes, cut: int | None) -> None:
        state = self.owner
        try:
            for start in range(0, len(data[:cut]), 1 << 16):
                while state.stall is not None and state.sent >= state.stall:
                    time.sleep(0.005)
                piece = data[:cut][start : start + (1 << 16)]
                self.wfile.write(piece)
                state.sent += len(piece)
                time.sleep(state.pause)
        except (BrokenPipeError, ConnectionResetError):
            pass
        if cut is not None and state.replacement:
            (state.data, state.etag), state.replacement = state.replacement, None


class ArchiveServer(LocalServer):
    """Use in a `with` block; its attributes may be changed at any time."""

    handler, path = _Handler, "/2021/train.tar.gz"

    def __init__(
        self, data: bytes, *, cuts: tuple[int, ...] = (), statuses: tuple[int, ...] = ()
    ) -> None:
        self.data = data
        self.ranges = True
        self.pause = 0.0
        self.stall: int | None = None  # bytes after which nothing is sent, as long as it is set
        self.cuts = list(cuts)  # bytes after which the next connections break
        self.statuses = list(statuses)  # what the next requests get
        self.location = "file:///x?key=SECRET"  # where an answer other than 200 sends one
        self.retry_after = ""  # seconds, in an answer other than 200
        self.etag = '"first"'
        self.replacement: tuple[bytes, str] | None = None  # data and tag after the next cut
        self.sent = 0
        self.paths: list[str] = []
        self.agents: set[str] = set()
        self.starts: list[int] = []
