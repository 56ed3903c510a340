"""Evidence in WebQA's rows: images with captions, and snippets of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vrag_kit.benchmarks.transforms import encode_id
from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import DocId, Document, JsonView

_LABELS = {"posFacts": 1, "negFacts": 0}
_FETCH = "Fetch WebQA_train_val.json again."


@dataclass(frozen=True, slots=True)
class Fact:
    """An entry of an evidence list in a row."""

    kind: str  # "img" or "txt"
    label: int  # 1 in the list of positive ones
    number: int  # in its list, from 0
    entry: object
    where: str


def facts(row: JsonView, kind: str, where: str) -> Iterator[Fact]:
    """Yield the images ("img") or snippets ("txt") of a question, positive ones first."""
    for suffix, label in _LABELS.items():
        key = f"{kind}_{suffix}"
        for number, entry in enumerate(row.get(key) or []):
            yield Fact(kind, label, number, entry, f"{where}, {key} number {number + 1}")


def read_image(fact: Fact) -> tuple[int, str]:
    """Return (image_id, caption) of an image; raises `VragError`, naming it."""
    entry = fact.entry if isinstance(fact.entry, dict) else {}
    image_id = entry.get("image_id")
    if isinstance(image_id, bool) or not re.fullmatch(r"\d+", str(image_id), re.ASCII):
        raise VragError(
            f"{fact.where}: 'image_id' is {short_repr(image_id)}, expected a whole number such as"
            " 30000007."
        )
    texts = [str(entry.get(key) or "").strip() for key in ("caption", "title")]
    caption = next(filter(None, texts), "")
    if not caption:
        raise VragError(
            f"{fact.where}: image {image_id} has neither 'caption' nor 'title', expected a text in"
            f" one of them. {_FETCH}"
        )
    return int(str(image_id)), caption


def read_snippet(fact: Fact, guid: str, corpus: Mapping[DocId, Document]) -> Document:
    """Return a snippet as a document with its `snippet_id`. The id is "<Guid>_txt_pos_<number>"
    ("…_neg_…") if there is none, or if a document of `corpus` with another text has it.

    Raises `VragError`, naming the snippet, if it has no text.
    """
    entry = fact.entry if isinstance(fact.entry, dict) else {}
    text = entry.get("fact")
    if not isinstance(text, str) or not text.strip():
        raise VragError(f"{fact.where}: 'fact' is {short_repr(text)}, expected a text. {_FETCH}")
    told = {key: str(entry.get(key) or "").strip() for key in ("title", "url")}
    given = str(entry.get("snippet_id") or "").strip()
    sign = "pos" if fact.label else "neg"
    made = f"{guid}_txt_{sign}_{fact.number}"
    doc_id = encode_id(given) or made
    if doc_id in corpus and corpus[doc_id].text != text.strip():
        doc_id = made
    return Document(doc_id=doc_id, text=text.strip(), metadata=told)
