"""A lazy mapping over an index of names."""

from __future__ import annotations

import pandas as pd

from vrag_kit.types import LazyMapping


def test_what_is_made_is_a_mapping_and_only_the_last_are_kept() -> None:
    made: list[str] = []

    def double(name: str) -> str:
        made.append(name)
        return 2 * name

    names = [str(number) for number in range(2000)]
    doubles = LazyMapping(pd.Index(names, dtype=object), double)
    assert doubles == {name: 2 * name for name in names}
    assert doubles.get("x") is None
    made.clear()
    assert [doubles["1999"], doubles["0"], doubles["0"]] == ["19991999", "00", "00"]
    assert made == ["0"]
