"""`TokenLimit`: truncates answers to a number of tokens, the same for all models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from vrag_kit.errors import VragError
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """Truncates a text to its first tokens, as one tokenizer counts them."""

    tokens: int
    """Maximum number of tokens, including those that the tokenizer puts before every text."""
    tokenizer: str
    """A folder with a `tokenizer.json`, or a name on the hub."""

    def __post_init__(self) -> None:
        """Raise `VragError` for a limit below 1."""
        if self.tokens < 1:
            raise VragError(f"max_answer_tokens is {self.tokens}; expected 1 or more.")

    def __call__(self, text: str) -> tuple[str, bool]:
        """Return (the text up to its last counted token, whether it reaches the limit).

        Raises `VragError` when the tokenizer cannot be read.
        """
        encoding = _load_tokenizer(self.tokenizer).encode(text)
        own = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        before = own[0] if own else 0  # special tokens behind a text do not count
        room = max(self.tokens - before, 0)
        if len(own) < room:
            return text, False
        if len(own) == room:
            return text, True
        end = encoding.offsets[own[room - 1]][1] if room else 0
        return text[:end], True


@lru_cache(maxsize=4)
def _load_tokenizer(name: str) -> Tokenizer:
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
            " `hf auth login`."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
