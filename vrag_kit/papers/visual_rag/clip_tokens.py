"""CLIP token counts of texts, from the byte-pair file that open_clip ships. Importing open_clip
itself would take seconds.
"""

from __future__ import annotations

import gzip
import html
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CLIP_TOKENS = 77
"""Maximum number of tokens that CLIP reads."""
_PAIRS = "bpe_simple_vocab_16e6.txt.gz"
_MOST = 49_152 - 256 - 2
"""Number of byte pairs used: CLIP's vocabulary without single bytes, start and end."""
_PIECES = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def clip_token_count(text: str) -> int:
    """Returns the number of CLIP tokens of a text, with start and end; CLIP reads the first 77."""
    import ftfy

    clean = html.unescape(html.unescape(ftfy.fix_text(text)))
    return len(_tokenizer().encode(" ".join(clean.split()).lower()).ids) + 2


@cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    package = find_spec("open_clip")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("open_clip_torch is not installed")
    with gzip.open(Path(package.origin).with_name(_PAIRS), "rt", encoding="utf-8") as file:
        lines = file.read().split("\n")[1 : _MOST + 1]
    pairs = [(first, second) for first, second in map(str.split, lines)]
    letters = pre_tokenizers.ByteLevel.alphabet()
    ends = [f"{letter}</w>" for letter in letters]
    words = [*letters, *ends, *map("".join, pairs)]
    made = Tokenizer(
        models.BPE(
            vocab={word: number for number, word in enumerate(words)},
            merges=pairs,
            end_of_word_suffix="</w>",
        )
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.add_special_tokens(["<start_of_text>", "<end_of_text>"])
    return made
