"""What is drawn, read, sent and forecast is what it was: tests/goldens/, and `goldens.py`."""

from __future__ import annotations

import json

import pytest
from goldens import QUICK, differences, kept


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_what_was_kept_is_still_found(name):
    found = json.loads(json.dumps(QUICK[name]()))
    assert differences(kept(name), found) == [], "`python tests/goldens.py` shows all of it"


def test_a_changed_a_lost_and_a_new_entry_are_differences():
    changed = differences({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 4, "d": 5})
    assert [line.split(":")[0] for line in changed] == ["b", "c", "d"]
