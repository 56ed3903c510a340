"""`VragError`, the one error that users meet.

It says where, what was found, what was expected, and what to do.
"""

from __future__ import annotations


class VragError(Exception):
    """A mistake in data, parameters or setup that the user can mend.

    The command line prints it without a traceback.
    """


class CertainError(VragError):
    """One that is met whatever models answer: where nobody is asked, it counts as well."""


class NotDrawnError(VragError):
    """Data that a run draws itself, and that a forecast does not: it takes minutes."""


def short(value: object) -> str:
    """A value as a message quotes it: as Python writes it, 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
