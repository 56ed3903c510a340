"""What somebody's own code does wrong, said in one line: its error, and where that was
raised; a text where a list is expected.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vrag_kit.errors import VragError

_OURS = Path(__file__).parent


def own_fault(made: object, error: Exception) -> str:
    """Such as "OverflowError: out of bounds (mine.py:20)": the last line reached in the
    file of a function or of an object's class, or in any file but ours where that one was
    not reached; none where it was called with too many arguments, or too few.
    """
    module = sys.modules.get(getattr(made, "__module__", ""))
    file = getattr(module, "__file__", None)
    frames = traceback.extract_tb(error.__traceback__)
    others = [frame for frame in frames if not Path(frame.filename).is_relative_to(_OURS)]
    own = [frame for frame in frames if frame.filename == file] or others
    where = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{where}"


@contextmanager
def own_code(
    owner: str,
    made: object,
    *,
    what: str = "",
    hint: str = "",
    passed: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """What code of `made`, an object or a function, raises in here becomes a `VragError`
    that names `owner` ("model x") and `what` of it, by default its class, and the file
    and line; `hint` ends it. Errors of the kinds `passed` stay as they are.
    """
    try:
        yield
    except Exception as error:  # whatever code that is not ours does
        if isinstance(error, (VragError, *passed)):
            raise
        what = what or f"its class {type(made).__name__}"
        fault = own_fault(made, error)
        raise VragError(f"{owner}: {what} failed with {fault}.{hint}") from error


def listed(found: object, owner: str) -> list[object]:
    """The items of a list, or of what can be listed, that a method of one's own has
    returned; raises `VragError` for a text or a mapping, whose items are not meant.
    """
    if isinstance(found, Iterable) and not isinstance(found, str | bytes | Mapping):
        return list(found)
    said = "a text" if isinstance(found, str) else f"a {type(found).__name__}"
    raise VragError(f"{owner} returned {said} ({str(found)[:60]!r}); expected a list of texts.")
