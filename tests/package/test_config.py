"""Entries and settings: what does not fit is refused by its place, and nothing else is changed."""

from __future__ import annotations

import json

import pytest

from vrag_kit.config import Decoding, decoding_of
from vrag_kit.errors import VragError
from vrag_kit.generation import load_generator
from vrag_kit.workspace import Workspace

URL = "m@http://localhost:1/v1"
GREEDY = {"temperature": 0}


@pytest.mark.parametrize("field", ["key", "body"])
def test_what_may_be_secret_is_never_shown(field: str) -> None:
    for value in ("sk-abc-123456", ["sk-abc-123456"], {"X-A": 5, "user": "sk-abc-123456"}):
        with pytest.raises(VragError, match=field) as refused:
            load_generator({"model": URL, field: value}, decoding=GREEDY)
        assert "sk-abc" not in str(refused.value)


def test_null_stands_for_the_default() -> None:
    assert decoding_of({"temperature": None, "max_new_tokens": None}) == Decoding()
    assert Workspace(device=None) == Workspace()
    plain, nulls = (
        load_generator({"model": URL, **options}, decoding={**GREEDY, "max_new_tokens": 7})
        for options in ({}, {"timeout": None, "body": None, "decoding": None, "name": None})
    )
    assert (nulls.fingerprint, nulls.decoding) == (plain.fingerprint, plain.decoding)
    assert plain.decoding["max_tokens"] == 7


def test_a_number_enters_keys_as_it_is_written() -> None:
    """1 and 1.0 are two keys of a stored answer."""
    given = {"temperature": 1, "top_p": 0.5, "repetition_penalty": 1.0}
    assert json.dumps(decoding_of(given).sampling) == json.dumps(given)
