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
from dataclasses import replace
from itertools import chain
from string import ascii_uppercase
from typing import Annotated
from urllib.parse import quote, unquote

import pandas as pd
from pydantic import BeforeValidator

from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import MODALITIES, Benchmark, DocId, QueryId

_UNSAFE = re.compile(r"[\s%\x00-\x1f\x7f]")
NO_LABEL = "no document is labelled as gold"
NOT_THERE = "a gold document is not in the corpus"
LEFT_OUT = ("dataset", "query_id", "reason", "doc_id")
_LETTERED = re.compile(r"[\s-]*\(?([A-Z])\s*[).:]\s*(.*)", re.DOTALL)
_LETTER = re.compile(r"\s*\(?([A-Z])\s*[).:]?\s*")


def encode_id(name: str) -> str:
    """Percent-encode the white space, control characters and "%" of a name. Different names
    stay different, and `decode_id` restores them.
    """
    return _UNSAFE.sub(lambda found: quote(found[0], safe=""), name)


def decode_id(doc_id: str) -> str:
    """Return the name that `encode_id` encoded."""
    return unquote(doc_id)


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
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def restrict_to_modality(benchmark: Benchmark, modality: str) -> Benchmark:
    """Restrict corpus, labels and pools to one modality; the questions stay the same.

    `modality` is "image" or "text", as in `Evidence.modality`. Queries whose labels are all
    of the other modality stay without labels; retrieval metrics leave them out. Raises
    `VragError` for an unknown modality, and if there is no such document.
    """
    if modality not in MODALITIES:
        raise VragError(f"modality is {modality!r}; expected one of {', '.join(MODALITIES)}.")
    corpus = {
        doc_id: document
        for doc_id, document in benchmark.corpus.items()
        if document.modality == modality
    }
    if not corpus:
        raise VragError(
            f"{benchmark.name}: none of {len(benchmark.corpus):,} documents is of the modality"
            f" {modality!r}. Search the other one."
        )

    qrels: dict[QueryId, dict[DocId, int]] = {}
    for query_id, labels in benchmark.qrels.items():
        qrels[query_id] = {each: label for each, label in labels.items() if each in corpus}
    pools: dict[QueryId, tuple[DocId, ...]] = {}
    for query_id, pool in (benchmark.pools or {}).items():
        pools[query_id] = tuple(each for each in pool if each in corpus)
    return replace(
        benchmark,
        fingerprint=hashlib.sha256(f"{benchmark.fingerprint} {modality}".encode()).hexdigest(),
        corpus=corpus,
        qrels=qrels,
        pools=None if benchmark.pools is None else pools,
    )


def captions_only(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with text-only documents, for text-to-caption search.

    The questions stay the same. Raises `VragError` for a document without text.
    """
    for doc_id, document in benchmark.corpus.items():
        if not (document.text or "").strip():
            raise VragError(
                f"{benchmark.name}: document {doc_id!r} has no text, so it cannot be found by its"
                " caption. Load a benchmark with captions."
            )
    return replace(
        benchmark,
        fingerprint=hashlib.sha256(f"{benchmark.fingerprint} captions only".encode()).hexdigest(),
        corpus={key: replace(each, image=None) for key, each in benchmark.corpus.items()},
    )


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
        there = []
        for query_id in benchmark.queries:
            gold = benchmark.relevant(query_id)
            lost = [doc_id for doc_id in gold if doc_id not in benchmark.corpus]
            if gold and not lost:
                there.append(query_id)
            elif lost:
                rows.append((name, query_id, NOT_THERE, lost[0]))
            else:
                rows.append((name, query_id, NO_LABEL, ""))
        if len(there) == len(benchmark.queries):
            kept[name] = benchmark
        elif there:
            kept[name] = benchmark.subset(there)
    return kept, pd.DataFrame(rows, columns=list(LEFT_OUT))


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


def correct_option(answer: str, options: Sequence[str]) -> tuple[str, str]:
    """Return (text of the correct option, "") for an answer that is a letter ("B", "(B)", "B."),
    an option ("B) 15") or its text; ("", reason) if it is none of the options.
    """
    texts = option_texts(options)
    plain = [_plain(text) for text in texts]
    if _plain(answer) in plain:
        return texts[plain.index(_plain(answer))], ""
    lettered = _LETTERED.fullmatch(answer)
    if lettered and _plain(lettered[2]) in plain:
        return texts[plain.index(_plain(lettered[2]))], ""
    letter = _LETTER.fullmatch(answer)
    if letter and letter[1] in ascii_uppercase[: len(texts)]:
        text = texts[ascii_uppercase.index(letter[1])]
        return (text, "") if text else ("", f"option {letter[1]}, the right one, is empty")
    return "", f"the answer {short_repr(answer)} is none of the options {', '.join(texts)}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
