"""Secrets stay in environment variables: fields of an entry are stored with every answer, and are
therefore checked for secrets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError

_NAMES = ("token", "secret", "password", "passwd", "authorization", "apikey", "accesskey")
"""Ends of the names of fields that hold a secret, their letters alone."""
_FORMS = re.compile(
    r"(?<![A-Za-z0-9])(sk[-_]|hf_|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ)"
    r"(?=\S*\d)\S{6,}|^(?i:bearer|basic)\s+\S{6,}$"
)
"""How keys of well-known providers begin, with a digit behind, and credentials in headers."""
_RANDOM = re.compile(r"^\S*?(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}\S*$")
"""Twenty letters and digits in a row, as in no word and no name of a model."""


def check_secrets(where: str, body: Options) -> None:
    """Raise `VragError` for a field of `body` that looks like a secret; its value is not shown."""
    for path, text in _texts(body, "body"):
        letters = re.sub("[^a-z]", "", path.lower())
        is_named = letters.endswith(_NAMES) and text[:1] not in ("", "<")  # a token, such as </s>
        if is_named or _FORMS.search(text) or _RANDOM.match(text):
            raise VragError(
                f"{where}, {path}: found what looks like a secret, which would be stored with"
                " answers; expected the name of an environment variable as `key`."
            )


def read_secret(variable: str | None) -> str:
    """Return the value of an environment variable; "" if it is not set, or there is none."""
    return os.environ.get(variable or "", "").strip()


def refuse_password(spec: str) -> None:
    """Raise `VragError` for a model whose address holds a password or a query, showing neither."""
    shown = re.sub(r"(https?://)\S*@", r"\1…@", spec)
    shown = re.sub(r"(https?://[^\s?]*\?)[^\s,\]]*", r"\1…", shown)
    if shown != spec:
        raise VragError(
            f"model {shown!r}: found a user name, a password or a query in its address, which is"
            " stored; expected the name of an environment variable as `key`."
        )


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """The texts in a field, each with its path ("body.user.token")."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _texts(each, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, path)
    elif isinstance(value, str):
        yield path, value
