"""Answers cut to a number of tokens, whatever model gave them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from vrag_kit.errors import VragError
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class Cut:
    """Keeps the first tokens of a text, as one tokenizer counts them."""

    tokens: int
    """At most so many, with those that the tokenizer sets before every text."""
    tokenizer: str
    """A folder with a `tokenizer.json`, or a name on the hub."""

    def __post_init__(self) -> None:
        """Raise `VragError` for less than a token."""
        if self.tokens < 1:
            raise VragError(f"answer_tokens is {self.tokens}; expected 1 or more.")

    def __call__(self, text: str) -> tuple[str, bool]:
        """(the text up to the end of its last token that counts, whether it has as many
        tokens as count, or had more).

        Raises `VragError` when the tokenizer cannot be read.
        """
        encoding = opened(self.tokenizer).encode(text)
        own = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        before = own[0] if own else 0  # what is set behind a text does not count
        room = self.tokens - before
        if len(own) < room:
            return text, False
        if room < 1:
            return "", True
        end = encoding.offsets[own[room - 1]][1]
        return text[:end] if len(own) > room else text, True


@lru_cache(maxsize=4)
def opened(name: str) -> Tokenizer:
    """The tokenizer in a folder, or on the hub; raises `VragError` where it cannot be
    had.
    """
    from tokenizers import Tokenizer

    folder = project_path(name)
    try:
        if folder.is_dir():
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        else:
            tokenizer = Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises no narrower kind
        raise VragError(
            f"answer_tokenizer {name!r} cannot be read ({error}); expected a folder with a"
            " tokenizer.json, or a name on the hub. A gated one needs its licence accepted and"
            " `hf auth login`; any other does too, and is recorded with the answers."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
