"""A web server on this machine, for tests of what is fetched and asked."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Handler(BaseHTTPRequestHandler):
    """Answers requests; `owner` is the server."""

    owner: Any

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Send status and headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class LocalServer:
    """Use in a `with` block. A subclass says how requests are handled, and below which path."""

    handler = Handler
    path = ""
    port = 0

    def __enter__(self) -> Self:
        handler = type("OwnHandler", (self.handler,), {"owner": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}{self.path}"
        run = {"target": self._http.serve_forever, "kwargs": {"poll_interval": 0.02}}
        threading.Thread(**run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
