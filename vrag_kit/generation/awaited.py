"""Who is to be asked about the answers that come: whoever cannot be asked then stops the
asking before it begins, and not hours later.
"""

from __future__ import annotations

import gc
from pathlib import Path
from weakref import WeakKeyDictionary

from vrag_kit.errors import VragError
from vrag_kit.forecast import current_forecast
from vrag_kit.generation.generator import Generator

_awaited: WeakKeyDictionary[Generator, tuple[str, Path]] = WeakKeyDictionary()
"""Models that are open to say something of others' answers → what they will be asked for,
and the store where that is kept. One that nobody holds any more counts no more.
"""


def await_words(generator: Generator, what: str, store: Path) -> None:
    """Note that a model will be asked for `what` ("verdicts") when there are answers in
    `store`; not in a forecast, which asks nobody.
    """
    if current_forecast() is None:
        _awaited[generator] = (what, store.resolve())


def check_awaited(asked: Generator, store: Path) -> None:
    """Raise `VragError`, before `asked` is asked anything new, where a model that waits
    for the answers in `store` lacks what is needed to ask it, such as a key; no weights
    are read.
    """
    if current_forecast() is not None or not _lacks(asked, store.resolve()):
        return
    gc.collect()  # errors and what they were about hold each other: one that was replaced is gone
    if lacks := _lacks(asked, store.resolve()):
        raise VragError(
            f"{lacks[0]} Nothing was asked of {asked.name!r} either. To ask it all the same, take"
            " another judge (`judge: rule`), or, in Python, `del` this one."
        )


def _lacks(asked: Generator, store: Path) -> list[str]:
    """What is said of each that cannot be asked. No frame of the error holds a model: it
    would count as long as the error is looked at.
    """
    waiting = [(each, what) for each, (what, place) in list(_awaited.items()) if place == store]
    return [
        f"model {each.name!r} is to be asked for {what} next, and cannot be: {missing}."
        for each, what in waiting
        if each is not asked and (missing := each.missing())
    ]
