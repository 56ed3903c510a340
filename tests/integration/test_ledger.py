"""Nothing that a user can type, set, read or click goes without a word: tests/ledger.csv."""

from __future__ import annotations

from ledger import features, read_ledger

AGAIN = "run `python tests/ledger.py`, and say what becomes of each by which decision"


def test_every_feature_of_the_code_is_in_the_ledger():
    assert sorted(features() - set(read_ledger())) == [], AGAIN


def test_a_feature_that_the_code_has_lost_says_what_became_of_it_and_by_which_decision():
    code = features()
    lost = {row: told for row, told in read_ledger().items() if row not in code}
    assert [row for row, (becomes, why) in lost.items() if becomes in ("", "kept") or not why] == []


def test_a_feature_that_is_said_to_be_gone_is_gone():
    code = features()
    known = read_ledger().items()
    assert [row for row, (becomes, _) in known if becomes != "kept" and row in code] == []
