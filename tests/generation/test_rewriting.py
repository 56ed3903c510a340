"""A rewriting is read strictly: the JSON object that was asked for, or nothing."""

from __future__ import annotations

from vrag_kit.generation.rewriting import parse_rewriting


def test_a_key_that_is_there_twice_makes_no_rewriting() -> None:
    once = '{"entity_name": "Van", "updated_question": "What of the  Van?"}'
    assert parse_rewriting(f"So: {once}") == {
        "outcome": "rewritten",
        "question": "What of the Van?",
    }
    twice = once.replace('{"entity', '{"updated_question": "What?", "entity')
    assert parse_rewriting(twice) == {"outcome": "unparsed"}
