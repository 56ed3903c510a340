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
from collections.abc import Mapping
from typing import Any

from local_server import Handler, LocalServer
from PIL import Image
from worded import worded

from vrag_kit.generation import load_generator
from vrag_kit.generation.remote.generator import EndpointGenerator
from vrag_kit.types import Prompt


class _Handler(Handler):
    protocol_version = "HTTP/1.1"

    def _stranger(self) -> bool:
        """Whether a header is not as it is wanted; what came is told."""
        wants = self.owner.wants
        came = {name: self.headers.get(name) for name in wants}
        if came == wants:
            return False
        self._send(401, {"error": {"message": f"you sent {came}", "type": "x"}})
        return True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._stranger():
            return
        what = self.owner.begin(body)
        try:
            time.sleep(self.owner.seconds)
            self._misbehave(what, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client had enough
        finally:
            self.owner.end()

    def _misbehave(self, what: str, body: dict[str, Any]) -> None:
        name, _, detail = what.partition(" ")
        for wanted, value in self.owner.wants.items():
            detail = detail.replace(f"<{wanted}>", value)  # it tells what it was sent
        good = completion(good_words(body))
        if name == "good":
            return self._send(200, {**good, "model": self.owner.serves})
        if name == "status":
            code, _, words = detail.partition(" ")
            headers = {"Retry-After": "1"} if code == "429" else {}
            error = {"message": words or "no", "type": "x"}
            error["param"] = "temperature" if "temperature" in words else None
            error["code"] = "content_policy_violation" if "policy" in words else None
            return self._send(int(code), {"error": error}, headers)
        if name == "detail":  # as `transformers serve` words it
            return self._send(400, {"detail": "Server is pinned to 'other'"})
        if name == "as":  # another model
            return self._send(200, {**good, "model": detail})
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
            text = json.dumps(good).encode()
            self._head(200, len(text))
            for byte in text:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.1)
            return None
        if name == "page":
            words = f"<html>Welcome to the router's login page {detail}</html>"
            return self._send(200, words.encode(), {"Content-Type": "text/html"})
        if name == "to":
            return self._send(307, {}, {"Location": detail})
        answers = {
            "choiceless": {**completion("x"), "choices": []},
            "hollow": {},  # as a proxy says that starts up
            "cached": {**good, "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 80}}},
            "truncated": completion("Answer: the hindwings are", "length"),
            "empty": completion(""),
            "filtered": completion(None, "content_filter"),
            "refusal": completion(None, refusal="I cannot help with that."),
            "parts": completion([{"type": "text", "text": words} for words in ("Answer: ", "red")]),
            "number": completion(7),
            "surrogate": completion("Answer: \ud83d red"),
            "unmetered": {key: value for key, value in good.items() if key != "usage"},
        }
        return self._send(200, answers[name])

    def _head(self, code: int, length: int, **more: str) -> None:
        self.head(code, {"Content-Type": "application/json", "Content-Length": str(length), **more})

    def _send(self, code: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self._head(code, len(data), **(headers or {}))
        self.wfile.write(data)


class StrangeServer(LocalServer):
    """Use in a `with` block.

    `plans` maps a piece of a question to what its calls get, one after another, the
    last for all that follow. `serves` is what it calls its model. It answers nothing without
    the headers that it `wants`.
    """

    handler, path = _Handler, "/v1"
    serves = "strange-2026"

    def __init__(
        self, plans: dict[str, list[str]] | None = None, *, seconds: float = 0.0, port: int = 0
    ) -> None:
        self.plans, self.seconds, self.port = plans or {}, seconds, port
        self.requests: list[dict[str, Any]] = []
        self.wants: dict[str, str] = {}
        self.most_at_once = self._at_once = 0
        self.lock = threading.Lock()

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


def text_in(body: dict[str, Any]) -> str:
    """All words of a request."""
    contents = [message["content"] for message in body["messages"]]
    return "\n".join(
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        for content in contents
    )


def images_in(body: dict[str, Any]) -> list[Image.Image]:
    """All pictures of a request, decoded as a server does it that knows nothing of
    EXIF.
    """
    images = []
    for message in body["messages"]:
        parts = [] if isinstance(message["content"], str) else message["content"]
        for part in parts:
            if part["type"] == "image_url":
                data = base64.b64decode(part["image_url"]["url"].split(",")[1])
                images.append(Image.open(io.BytesIO(data)).convert("RGB"))
    return images


def good_words(body: dict[str, Any]) -> str:
    """The answer to a request: it depends on every word and pixel, in order."""
    pixels = [hashlib.sha256(image.tobytes()).hexdigest() for image in images_in(body)]
    told = repr([text_in(body), pixels, body.get("seed")])
    return f"Answer: {hashlib.sha256(told.encode()).hexdigest()[:8]}"


USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def completion(words: Any, why: str = "stop", refusal: str | None = None) -> dict[str, Any]:
    """A chat completion."""
    message = {"role": "assistant", "content": words, "refusal": refusal}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "strange-2026",
        "usage": USAGE,
        "choices": [{"index": 0, "finish_reason": why, "message": message}],
    }


def connect(*servers: StrangeServer | str, **options: Any) -> EndpointGenerator:
    """A greedy model at these servers."""
    urls = [each if isinstance(each, str) else each.url for each in servers]
    where = urls[0] if len(urls) == 1 else f"[{', '.join(urls)}]"
    how = {"timeout": 1.5, "retries": 2, "concurrency": 4}
    decoding = {"temperature": 0, "max_new_tokens": 16}
    return load_generator({"model": f"strange@{where}", **how, **options}, decoding=decoding)


def question(words: str) -> Prompt:
    return worded("no_image", words)
