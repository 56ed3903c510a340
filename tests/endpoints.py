"""An entry of a model that is served at some addresses, and questions to it."""

from __future__ import annotations

from typing import Any

from strange_server import StrangeServer
from worded import worded

from vrag_kit.generation import load_generator
from vrag_kit.generation.remote.generator import EndpointGenerator
from vrag_kit.types import Prompt


def connect(*servers: StrangeServer | str, **options: Any) -> EndpointGenerator:
    """A greedy model at these servers."""
    urls = [each if isinstance(each, str) else each.url for each in servers]
    where = urls[0] if len(urls) == 1 else f"[{', '.join(urls)}]"
    how = {"timeout": 1.5, "retries": 2, "concurrency": 4}
    decoding = {"temperature": 0, "max_new_tokens": 16}
    model = load_generator({"model": f"strange@{where}", **how, **options}, decoding=decoding)
    return model


def question(words: str) -> Prompt:
    return worded("no_image", words)
