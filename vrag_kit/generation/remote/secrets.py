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
_NAMES = ("token", "secret", "password", "passwd", "authorization", "apikey", "accesskey")
"""Ends of the names of fields that hold a secret, their letters alone."""
_FORMS = re.compile(
    r"(?<![A-Za-z0-9])(sk[-_]|hf_|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ)"
    r"(?=\S*\d)\S{6,}"
)
"""How the keys of well-known providers begin, with a number behind."""
_RUN = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}")
"""Letters and digits, as no word of a language or name of a model has so many."""
_VARIED = 10
"""Different letters that such a run has at least."""


def check_secrets(spec: str, options: Options) -> None:
    """Raise `VragError` for a header or a field of `body` that looks like a secret. Also raises it
    for invalid headers. The message shows no value.
    """
    for path, value in _texts(options.get("body", {}), "body"):
        if _looks_secret(path, value):
            raise VragError(
                f"model {spec!r}: {path} looks like a secret, and `body` is stored with every"
                " answer. Set a variable of the environment, and say `headers: {X-Token: $NAME}`."
            )
    headers = options.get("headers", {})
    if not isinstance(headers, Mapping):
        raise VragError(
            f"model {spec!r}: headers is a {type(headers).__name__}; expected a mapping, such as"
            " {X-Token: $NAME}."
        )
    for name, value in headers.items():
        if wrong := _wrong(name, value):
            raise VragError(
                f"model {spec!r}: headers: {name} {wrong}; expected $NAME, a variable of the"
                " environment that holds it, as in {X-Token: $NAME}."
            )


def variables_in(headers: Mapping[str, str]) -> list[str]:
    """Return the environment variables that headers name."""
    return _VARIABLE.findall(" ".join(headers.values()))


def resolve_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with the values of their environment variables."""
    return {name: _VARIABLE.sub(_value, value) for name, value in headers.items()}


def read_secret(variable: str) -> str:
    """Return the value of an environment variable; "" if it is not set."""
    return os.environ.get(variable, "").strip()


def refuse_password(spec: str) -> str:
    """Return the name of a served model, unless its address holds a password or a query. In that
    case raises `VragError`, which shows neither.
    """
    shown = re.sub(r"(https?://)\S*@", r"\1…@", spec)
    shown = re.sub(r"(https?://[^\s?]*\?)[^\s,\]]*", r"\1…", shown)
    if shown != spec:
        raise VragError(
            f"model {shown!r}: its address holds a user name, a password or a query. Addresses"
            " are stored: name the variable of the environment that holds the secret as `key`, or"
            " in `headers: {Authorization: Bearer $NAME}`."
        )
    return spec


def _value(match: re.Match[str]) -> str:
    return read_secret(match[1])


def _wrong(name: object, value: object) -> str:
    """What is wrong with a header."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
        return "is no name of a header"
    if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
        return "is no text"
    beside = _VARIABLE.sub("", value)
    if "$" in beside:
        return "holds a $ that names no variable"
    looks = _looks_secret(name, value) if beside == value else _looks_secret("", beside)
    return "looks like a secret" if looks else ""


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """The texts in a field, each with where it stands: ("body.user.token", "…")."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _texts(each, f"{path}.{name}")
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, path)
    elif isinstance(value, str):
        yield path, value


def _looks_secret(path: str, value: str) -> bool:
    named = re.sub("[^a-z]", "", path.lower()).endswith(_NAMES)
    if named and value and not value.startswith("<"):  # as a model's own marks do: </s>
        return True
    runs = [] if re.search(r"\s", value) else _RUN.findall(value)
    varied = any(len(set(run)) >= _VARIED for run in runs)
    return varied or bool(_FORMS.search(value) or re.match(r"(?i)(bearer|basic)\s+\S{6,}$", value))
