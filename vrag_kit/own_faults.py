"""An error in somebody's own code, in one line: what it says, and where it was raised."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path


def own_fault(made: object, error: Exception) -> str:
    """Such as "OverflowError: out of bounds (mine.py:20)": the last line reached in the
    file of an object's class, or in any file where that one was not reached.
    """
    module = sys.modules.get(type(made).__module__)
    file = getattr(module, "__file__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file] or frames
    where = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{where}"
