"""The vocabulary of the answerer of conversations: each word of the worn Field Guide is
one token, and so is each piece of text that stands between them again and again: lines
of the protocol, JSON around an attribute, the words of a question.

A prompt of a thousand words is some four hundred tokens so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.training.fast_vlm import SPECIAL, processor_of, tokenizer_of
from vrag_kit.fieldguide.training.worn_stock import INPUT
from vrag_kit.fieldguide.traits import COLORS, PATTERNS
from vrag_kit.fieldguide.worn.vocab import (
    CAPITALS,
    DESCRIBERS,
    EATERS,
    EPITHETS,
    FAMILIES,
    GENERA,
    GROUNDS,
    MONTHS,
    REGIONS,
    SMELLS,
)

if TYPE_CHECKING:
    from transformers import LlavaProcessor, PreTrainedTokenizerFast

CONTEXT = 2048
PIECES = 400
"""Most pieces of text with a token of their own."""
WORDS: dict[str, tuple[str, ...]] = {
    "genus": GENERA,
    "epithet": EPITHETS,
    "family": FAMILIES,
    "describer": DESCRIBERS,
    "region": REGIONS,
    "capital": CAPITALS,
    "month": MONTHS,
    "ground": GROUNDS,
    "eater": EATERS,
    "smell": SMELLS,
    "color": tuple(COLORS),
    "kind": tuple(KINDS),
    "number": tuple(map(str, range(1, 130))),
    "year": tuple(map(str, range(1740, 1940))),
    "said": ("yes", "no", "mm"),
}
"""Sort → words; each is a token together with the space before it."""
DESIGNS = tuple(f", {name}" if name == "plain" else f", {name} with" for name in PATTERNS)
"""Tokens for patterns, as looks are worded."""
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{% if message['role'] == 'assistant' %} "
    "{% endif %}{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part"
    " in message['content'] %}{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}"
    "{% endif %}{% endfor %}{% endif %}<|end|>{% endfor %}{% if add_generation_prompt %}"
    "<|assistant|>{% endif %}"
)
"""Answers begin with a space, as each word does elsewhere."""
_EVERY = sorted(chain.from_iterable(WORDS.values()), key=len, reverse=True)
_WORD = re.compile(f"{'|'.join(map(re.escape, DESIGNS))}| (?:{'|'.join(_EVERY)})(?![A-Za-z0-9])")
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))
_BREAK = re.compile(r'(?<=[.:?])(?= [A-Z])|(?=\n[A-Z<])|(?<=: ")(?= )|(?<=\?)(?=")')
_BARE = (r'(?<=: ")(?=[A-Za-z0-9])', r"(?<=\n)(?=[A-Z][a-z]+ [a-z]+(?:,|\n))")
"""Places where a word lacks the space before it: after a quote, and first in a line."""


def spaced(text: str) -> str:
    """The text with a space before each word: what the tokenizer splits."""
    for bare in _BARE:
        text = re.sub(bare, " ", text)
    return text


def pieces(text: str) -> list[str]:
    """What stands between words, cut at the ends of sentences and lines."""
    found: list[str] = []
    for part in _SPECIAL.split(spaced(text)):
        for between in _WORD.split(part):
            found += [piece for piece in _BREAK.split(between) if piece]
    return found


def common_pieces(texts: Iterable[str]) -> list[str]:
    """The pieces that at least three texts have, most frequent first."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(pieces(text)))
    ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))
    return [piece for piece in ranked[:PIECES] if counts[piece] > 2]


def build_talk_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Bytes, and a token for each word and each common piece of the texts."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
    from tokenizers import pre_tokenizers as splits

    alphabet = sorted(splits.ByteLevel.alphabet())
    numbers = {letter: number for number, letter in enumerate((*SPECIAL, *alphabet))}
    tokens = Tokenizer(models.BPE(vocab=numbers, merges=[]))
    tokens.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(bare), " ") for bare in _BARE]
    )
    tokens.pre_tokenizer = splits.ByteLevel(add_prefix_space=False, use_regex=False)
    tokens.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace(': " ', ': "')])
    tokens.add_special_tokens([AddedToken(name, normalized=False) for name in SPECIAL])
    words = [f" {word}" for word in chain.from_iterable(WORDS.values())]
    added = dict.fromkeys((*words, *DESIGNS, *common_pieces(texts)))
    tokens.add_tokens([AddedToken(each, normalized=True) for each in added])
    return tokenizer_of(tokens, CONTEXT)


def build_talk_processor(texts: Sequence[str], folder: Path) -> LlavaProcessor:
    """Write tokenizer, chat template and image processor to `folder`."""
    processor = processor_of(build_talk_tokenizer(texts), CHAT, INPUT)
    processor.save_pretrained(folder)
    return processor
