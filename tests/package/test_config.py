"""Entries and settings: what does not fit is refused by its place, and nothing else is changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vrag_kit.config import Decoding, read_settings
from vrag_kit.errors import VragError
from vrag_kit.generation import load_generator

URL = "m@http://localhost:1/v1"
GREEDY = {"temperature": 0}


def refusal(options: dict[str, Any], decoding: Any = GREEDY) -> str:
    with pytest.raises(VragError) as refused:
        load_generator({"model": URL, **options}, decoding=decoding)
    return str(refused.value)


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({"timeout": "long"}, ["timeout", "found 'long'", "seconds"]),
        ({"retries": True}, ["retries", "found True", "integer"]),
        ({"decoding": {"temperature": "hot"}}, ["decoding, temperature", "found 'hot'", "number"]),
        ({"decoding": {"temperature": False}}, ["decoding, temperature", "found False"]),
        ({"decoding": {"top_q": 0.9}}, ["decoding", "'top_q'", "Did you mean 'top_p'?"]),
        ({"tmeout": 3}, ["'tmeout'", "Did you mean 'timeout'?"]),
        ({"tmeout": None}, ["'tmeout'", "Did you mean 'timeout'?"]),
        ({"prices": [1]}, ["prices", "found [1]", "two prices"]),
    ],
)
def test_an_option_that_does_not_fit_is_named_with_what_was_found_and_expected(
    options: dict[str, Any], tokens: list[str]
) -> None:
    message = refusal(options)
    assert message.startswith(f"model '{URL}'")
    assert [token for token in tokens if token not in message] == []


@pytest.mark.parametrize("field", ["key", "body"])
def test_what_may_be_secret_is_never_shown(field: str) -> None:
    for value in ("sk-abc-123456", ["sk-abc-123456"], {"X-A": 5, "user": "sk-abc-123456"}):
        message = refusal({field: value})
        assert field in message
        assert "sk-abc" not in message


def test_null_stands_for_the_default() -> None:
    nothing = {"temperature": None, "max_new_tokens": None}
    assert read_settings(Decoding, nothing, "decoding") == Decoding()
    plain, nulls = (
        load_generator({"model": URL, **options}, decoding={**GREEDY, "max_new_tokens": 7})
        for options in ({}, {"timeout": None, "body": None, "decoding": None, "name": None})
    )
    assert (nulls.fingerprint, nulls.decoding) == (plain.fingerprint, plain.decoding)
    assert plain.decoding["max_tokens"] == 7


def test_a_number_enters_keys_as_it_is_written() -> None:
    """1 and 1.0 are two keys of a stored answer."""
    given = {"temperature": 1, "top_p": 0.5, "repetition_penalty": 1.0}
    assert json.dumps(read_settings(Decoding, given, "decoding").sampling) == json.dumps(given)
