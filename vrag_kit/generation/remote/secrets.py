"""Secrets in endpoint headers, whose values come from environment variables. Other fields of an
entry are stored with every answer, and are therefore checked for secrets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError

_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_NAMES = ("token", "secret", "password", "passwd", "authorization", "apikey", "accesskey")
"""Ends of the names of fields that hold a secret, their letters alone."""
_FORMS = re.compile(
    r"(?<![A-Za-z0-9])(sk[-_]|hf_|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ)"
    r"(?=\S*\d)\S{6,}|^(?i:bearer|basic)\s+\S{6,}$"
)
"""How keys of well-known providers begin, with a digit behind, and credentials in headers."""
_RANDOM = re.compile(r"^\S*?(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}\S*$")
"""Twenty letters and digits in a row, as in no word and no name of a model."""


def check_secrets(where: str, body: Options, headers: Mapping[str, str]) -> None:
    """Raise `VragError` for a header or a field of `body` that looks like a secret, and for a
    header that cannot be sent. The message shows no value.
    """
    found = ""
    for path, text in _texts(body, "body"):
        if _looks_secret(path, text):
            found = f"{path}: found what looks like a secret, which would be stored with answers"
    for name, text in headers.items():
        rest = _VARIABLE.sub("", text)
        if not (_HEADER.fullmatch(name) and text.isascii() and text.isprintable()) or "$" in rest:
            found = f"headers, {name}: found what no header can hold"
        elif _looks_secret(name if rest == text else "", rest):
            found = f"headers, {name}: found what looks like a secret"
    if found:
        raise VragError(f"{where}, {found}; expected a variable, `headers: {{X-Token: $NAME}}`.")


def variables_in(headers: Mapping[str, str]) -> list[str]:
    """Return the environment variables that headers name."""
    return _VARIABLE.findall(" ".join(headers.values()))


def resolve_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with the values of their environment variables."""
    return {
        name: _VARIABLE.sub(lambda found: read_secret(found[1]), text)
        for name, text in headers.items()
    }


def read_secret(variable: str) -> str:
    """Return the value of an environment variable; "" if it is not set."""
    return os.environ.get(variable, "").strip()


def refuse_password(spec: str) -> None:
    """Raise `VragError` for a model whose address holds a password or a query, showing neither."""
    shown = re.sub(r"(https?://)\S*@", r"\1…@", spec)
    shown = re.sub(r"(https?://[^\s?]*\?)[^\s,\]]*", r"\1…", shown)
    if shown != spec:
        raise VragError(
            f"model {shown!r}: found a user name, a password or a query in its address, which is"
            " stored; expected the name of an environment variable as `key`, or"
            " `headers: {Authorization: Bearer $NAME}`."
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


def _looks_secret(path: str, value: str) -> bool:
    if re.sub("[^a-z]", "", path.lower()).endswith(_NAMES) and value and value[0] != "<":
        return True  # unlike a model's own token, such as </s>
    return bool(_FORMS.search(value) or _RANDOM.match(value))
