"""Transform benchmarks and their parts: ids, options, groups, and selections of documents and
questions.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from string import ascii_uppercase
from typing import Annotated
from urllib.parse import quote

import pandas as pd
from pydantic import AfterValidator, BeforeValidator

from vrag_kit.benchmarks.rows import Text
from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import Benchmark

_LETTERED = re.compile(r"[\s-]*\(?([A-Z])\s*[).:]\s*(.*)", re.DOTALL)
_LETTER = re.compile(r"\s*\(?([A-Z])\s*[).:]?\s*")


def encode_id(name: str) -> str:
    """Percent-encode the white space, control characters and "%" of a name. Different names
    stay different, and `urllib.parse.unquote` restores them.
    """
    return percent_encode_spaces(name.replace("%", "%25"))


def percent_encode_spaces(name: str) -> str:
    """Percent-encode white space and control characters, which ids cannot contain."""
    return re.sub(r"[\s\x00-\x1f\x7f]", lambda found: quote(found[0], safe=""), name)


def _encoded(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return encode_id(value)
    raise ValueError(f"is {short_repr(value)}; expected a text or a whole number.")


RowId = Annotated[str, BeforeValidator(_encoded)]
"""An id in a row, a text or a whole number, encoded as `encode_id` does."""


def normalize_text(text: str) -> str:
    """Return a text without regard to case and white space."""
    return " ".join(text.casefold().split())


def normalize_label(text: str) -> str:
    """Return a text without regard to case, with spaces for underscores and hyphens."""
    return normalize_text(re.sub("[_-]", " ", text))


SpacelessText = Annotated[Text, AfterValidator(percent_encode_spaces)]
"""A text without white space around it, encoded as `percent_encode_spaces` does."""


def hash_parts(*parts: Iterable[object]) -> str:
    """Hash the JSON of each element of each part, in order: the fingerprint of a benchmark."""
    digest = hashlib.sha256()
    for each in chain(*parts):
        digest.update(json.dumps(each).encode())
    return digest.hexdigest()


def parse_literal(text: str) -> object:
    """Parse a text as JSON, else as a Python literal; returns the text itself if it is
    neither.
    """
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return parse(text.strip())
    return text


def restrict_to_modality(benchmark: Benchmark, modality: str) -> Benchmark:
    """Restrict corpus, labels and pools to one modality; the questions stay the same.

    `modality` is "image" or "text", as in `Evidence.modality`. Queries whose labels are all
    of the other modality stay without labels; retrieval metrics leave them out. Raises
    `VragError` if there is no such document.
    """
    corpus = {
        doc_id: document
        for doc_id, document in benchmark.corpus.items()
        if document.modality == modality
    }
    if not corpus:
        raise VragError(f"{benchmark.name}: found no document of the modality {modality!r}.")
    qrels = {
        query_id: {doc_id: label for doc_id, label in labels.items() if doc_id in corpus}
        for query_id, labels in benchmark.qrels.items()
    }
    pools = benchmark.pools and {
        query_id: tuple(doc_id for doc_id in pool if doc_id in corpus)
        for query_id, pool in benchmark.pools.items()
    }
    return benchmark.derive(modality, corpus=corpus, qrels=qrels, pools=pools)


def captions_only(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with text-only documents, for text-to-caption search.

    The questions stay the same. Raises `VragError` for a document without text.
    """
    for doc_id, document in benchmark.corpus.items():
        if not (document.text or "").strip():
            raise VragError(f"{benchmark.name}: document {doc_id!r} has no text to search.")
    corpus = {key: replace(each, image=None) for key, each in benchmark.corpus.items()}
    return benchmark.derive("captions only", corpus=corpus)


def with_gold_evidence(
    datasets: Mapping[str, Benchmark],
) -> tuple[dict[str, Benchmark], pd.DataFrame]:
    """Drop questions whose gold evidence is missing; returns the data sets and a table.

    The table has a row per dropped question: dataset, query_id, reason, doc_id (the first
    missing gold document; "" if none is labelled). A label of 1 or more is gold. A data set
    without remaining questions is left out.
    """
    kept: dict[str, Benchmark] = {}
    rows: list[tuple[str, str, str, str]] = []
    for name, benchmark in datasets.items():
        complete = []
        for query_id in benchmark.queries:
            gold = benchmark.relevant(query_id)
            lost = [doc_id for doc_id in gold if doc_id not in benchmark.corpus]
            if gold and not lost:
                complete.append(query_id)
            elif lost:
                rows.append((name, query_id, "a gold document is not in the corpus", lost[0]))
            else:
                rows.append((name, query_id, "no document is labelled as gold", ""))
        if complete:
            is_whole = len(complete) == len(benchmark.queries)
            kept[name] = benchmark if is_whole else benchmark.subset(complete)
    return kept, pd.DataFrame(rows, columns=["dataset", "query_id", "reason", "doc_id"])


def connected_groups(keys: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Map each question to the first of its group: questions that share keys, also indirectly.
    Groups are the connected components of the graph of questions and keys. A question without
    keys is a group by itself.
    """
    having: dict[str, list[str]] = defaultdict(list)
    for name, its in keys.items():
        for key in its:
            having[key].append(name)
    first: dict[str, str] = {}
    for start in keys:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name in first:
                continue
            first[name] = start
            for key in keys[name]:
                waiting += having.pop(key, [])
    return first


def option_texts(options: Sequence[str]) -> tuple[str, ...]:
    """Strip the letters from options if they run from A without gaps ("A) 12", "B) 15"); other
    options only lose surrounding white space.
    """
    found = [_LETTERED.fullmatch(option) for option in options]
    letters = "".join(match[1] for match in found if match)
    if len(letters) == len(options) and ascii_uppercase.startswith(letters):
        return tuple(match[2].strip() for match in found if match)
    return tuple(option.strip() for option in options)


def correct_option(answer: str, options: Sequence[str]) -> str:
    """Return the text of the correct option for an answer that is a letter ("B", "(B)", "B."), an
    option ("B) 15") or its text; "" if it is none of the options.
    """
    texts = option_texts(options)
    text_of = {normalize_text(text): text for text in reversed(texts)}
    lettered = _LETTERED.fullmatch(answer)
    for text in (answer, lettered[2] if lettered else answer):
        if normalize_text(text) in text_of:
            return text_of[normalize_text(text)]
    letter = _LETTER.fullmatch(answer)
    number = ascii_uppercase.index(letter[1]) if letter else len(texts)
    return texts[number] if number < len(texts) else ""
