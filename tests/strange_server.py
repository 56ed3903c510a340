"""A small OpenAI-compatible server that answers with a hash of what it was asked, notes
every request, and misbehaves where a question tells it to.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image


class StrangeServer:
    """Use in a `with` block.

    `plans` maps a piece of a question to what its calls get, one after another, the
    last for all that follow. `serves` is what it calls its model. It answers nothing without
    the headers that it `wants`.
    """

    serves = "strange-2026"

    def __init__(
        self, plans: dict[str, list[str]] | None = None, *, seconds: float = 0.0, port: int = 0
    ) -> None:
        self.plans, self.seconds, self.port = plans or {}, seconds, port
        self.requests: list[dict[str, Any]] = []
        self.wants: dict[str, str] = {}
        self.most_at_once = self._at_once = 0
        self.lock = threading.Lock()

    def __enter__(self) -> StrangeServer:
        owner = self

        class Handler(_Handler):
            server_state = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def calls(self, piece: str) -> int:
        """How often a question with this piece was asked."""
        with self.lock:
            return sum(piece in text_in(request) for request in self.requests)

    def begin(self, body: dict[str, Any]) -> str:
        """Note a request; returns what it gets."""
        with self.lock:
            piece = next((piece for piece in self.plans if piece in text_in(body)), None)
            number = sum(piece in text_in(request) for request in self.requests) if piece else 0
            self.requests.append(body)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        return self.plans[piece][min(number, len(self.plans[piece]) - 1)] if piece else "good"

    def end(self) -> None:
        with self.lock:
            self._at_once -= 1


def _parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of all messages of a request, each message's followed by a line break."""
    for message in body["messages"]:
        content = message["content"]
        yield from [{"text": content}] if isinstance(content, str) else content
        yield {"text": "\n"}


def text_in(body: dict[str, Any]) -> str:
    """All text of a request, a line break after each message but the last."""
    return "".join(part.get("text", "") for part in _parts(body)).removesuffix("\n")


def images_in(body: dict[str, Any]) -> list[Image.Image]:
    """All images of a request, decoded as by a server that knows nothing of EXIF."""
    urls = [part["image_url"]["url"] for part in _parts(body) if "image_url" in part]
    data = [io.BytesIO(base64.b64decode(url.split(",")[1])) for url in urls]
    return [Image.open(each).convert("RGB") for each in data]


def good_words(body: dict[str, Any]) -> str:
    """The answer to a request: it depends on every word and pixel, in order."""
    pixels = [hashlib.sha256(image.tobytes()).hexdigest() for image in images_in(body)]
    content = repr([text_in(body), pixels, body.get("seed")])
    return f"Answer: {hashlib.sha256(content.encode()).hexdigest()[:8]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: StrangeServer

    def _stranger(self) -> bool:
        """Whether a header is not as it is wanted; what came is told."""
        wants = self.server_state.wants
        came = {name: self.headers.get(name) for name in wants}
        if came == wants:
            return False
        self._send(401, {"error": {"message": f"you sent {came}", "type": "x"}})
        return True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._stranger():
            return
        what = self.server_state.begin(body)
        try:
            time.sleep(self.server_state.seconds)
            self._misbehave(what, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client had enough
        finally:
            self.server_state.end()

    def _misbehave(self, what: str, body: dict[str, Any]) -> None:
        name, _, detail = what.partition(" ")
        for wanted, value in self.server_state.wants.items():
            detail = detail.replace(f"<{wanted}>", value)  # it tells what it was sent
        if name == "good":
            good = completion(good_words(body))
            return self._send(200, {**good, "model": self.server_state.serves})
        if name == "status":
            code, _, words = detail.partition(" ")
            error = {
                "message": words or "no",
                "type": "x",
                "param": "temperature" if "temperature" in words else None,
                "code": "content_policy_violation" if "policy" in words else None,
            }
            headers = {"Retry-After": "1"} if code == "429" else {}
            return self._send(int(code), {"error": error}, headers)
        if name == "detail":  # as `transformers serve` words it
            return self._send(400, {"detail": "Server is pinned to 'other'"})
        if name == "as":  # another model
            return self._send(200, {**completion(good_words(body)), "model": detail})
        if name == "say":
            return self._send(200, completion(detail))
        if name == "hang":
            return time.sleep(float(detail))
        if name == "reset":
            self._head(200, 1000)
            self.wfile.write(b'{"id": "x", "choi')
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        if name == "drip":
            text = json.dumps(completion(good_words(body))).encode()
            self._head(200, len(text))
            for byte in text:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.1)
            return None
        if name == "garbage":
            return self._send(200, b'{"id": "x", "choices": [{"mess')
        if name == "page":
            words = f"<html>Welcome to the router's login page {detail}</html>"
            return self._send(200, words.encode(), kind="text/html")
        if name == "to":
            return self._send(307, {}, {"Location": detail})
        return self._send(200, self._odd_answer(name, body))

    def _odd_answer(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        good = completion(good_words(body))
        cached = {**good["usage"], "prompt_tokens_details": {"cached_tokens": 80}}
        parts = [{"type": "text", "text": "Answer: "}, {"type": "text", "text": "red"}]
        answers: dict[str, dict[str, Any]] = {
            "choiceless": {**good, "choices": []},
            "hollow": {},  # as a proxy says that starts up
            "messageless": {**good, "choices": [{}]},
            "oddly": {**good, "choices": {"first": "x"}},
            "cached": {**good, "usage": cached},
            "truncated": completion("Answer: the hindwings are", "length"),
            "empty": completion(""),
            "filtered": completion(None, "content_filter"),
            "refusal": completion(None, refusal="I cannot help with that."),
            "parts": completion(parts),
            "number": completion(7),
            "surrogate": completion("Answer: \ud83d red"),
            "unmetered": {key: value for key, value in good.items() if key != "usage"},
        }
        return answers[name]

    def _head(self, code: int, length: int, kind: str = "application/json", **more: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(
        self,
        code: int,
        content: Any,
        headers: dict[str, str] | None = None,
        kind: str = "application/json",
    ) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self._head(code, len(data), kind, **(headers or {}))
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def completion(words: Any, why: str = "stop", refusal: str | None = None) -> dict[str, Any]:
    """A chat completion."""
    message = {"role": "assistant", "content": words, "refusal": refusal}
    return {
        **{"id": "x", "object": "chat.completion", "created": 0, "model": "strange-2026"},
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        "choices": [{"index": 0, "finish_reason": why, "message": message}],
    }
