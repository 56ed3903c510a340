"""What the tests of generation share: a server, an answer store, and tiny models by family."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from strange_server import StrangeServer

from vrag_kit.generation import AnswerStore, LocalGenerator, load_generator
from vrag_kit.generation.remote import client


@pytest.fixture
def server():
    with StrangeServer() as server:
        yield server


@pytest.fixture
def store(tmp_path):
    with AnswerStore(tmp_path / "a.sqlite") as store:
        yield store


@pytest.fixture
def short_pauses(monkeypatch):
    """Pauses between retries, except those that a server asks for, are short."""
    import openai._base_client as openai_client

    monkeypatch.setattr(openai_client, "INITIAL_RETRY_DELAY", 0.02)
    monkeypatch.setattr(openai_client, "MAX_RETRY_DELAY", 0.02)
    monkeypatch.setattr(client, "_COOLDOWN", 0.4)
    monkeypatch.setattr(client, "_PAUSE", 0.02)


@pytest.fixture(scope="session")
def load(checkpoint_of):
    """Loads a family's tiny model, greedy: once, except where options are given."""

    def opened(family: str, **options: Any) -> LocalGenerator:
        entry = {"model": str(checkpoint_of(family)), **options}
        return load_generator(entry, decoding={"temperature": 0, "max_new_tokens": 8})

    once = functools.cache(opened)
    return lambda family, **options: (opened if options else once)(family, **options)
