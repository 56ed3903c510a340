"""What tests of endpoints need: an entry of a model served at some addresses, and questions."""

from __future__ import annotations

from typing import Any

import pytest
from strange_server import StrangeServer
from worded import worded

from vrag_kit.generation import load_generator
from vrag_kit.generation.remote import client
from vrag_kit.generation.remote.generator import EndpointGenerator
from vrag_kit.types import Prompt


def connect(*servers: StrangeServer | str, **options: Any) -> EndpointGenerator:
    """A greedy model at these servers."""
    urls = [each if isinstance(each, str) else each.url for each in servers]
    where = urls[0] if len(urls) == 1 else f"[{', '.join(urls)}]"
    how = {"timeout": 1.5, "retries": 2, "concurrency": 4}
    decoding = {"temperature": 0, "max_new_tokens": 16}
    model = load_generator({"model": f"strange@{where}", **how, **options}, decoding=decoding)
    assert isinstance(model, EndpointGenerator)
    return model


def question(words: str) -> Prompt:
    return worded("no_image", words)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between retries, but those that a server asks for, are short."""
    import openai._base_client as openai_client

    monkeypatch.setattr(openai_client, "INITIAL_RETRY_DELAY", 0.02)
    monkeypatch.setattr(openai_client, "MAX_RETRY_DELAY", 0.02)
    monkeypatch.setattr(client, "_COOLDOWN", 0.4)
    monkeypatch.setattr(client, "_PAUSE", 0.02)
