"""Core types of the kit: frozen dataclasses from query and evidence to judgment.

They serve Visual-RAG, MRAG-Bench, MRAG-Suite and CRAG-MM. A question passes through `Query` → run →
`Context` → `Prompt` → `Answer` → `Judgment` → a row of a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vrag_kit.errors import VragError

if TYPE_CHECKING:
    from PIL import Image

Json = dict[str, Any]  # Any: text, numbers, flags, nothing, and lists and mappings of them
"""A mapping of plain data, as in JSON and YAML; its reader validates the contents."""
JsonView = Mapping[str, Any]  # Any: likewise
"""The same, read-only."""
Value = TypeVar("Value", covariant=True)
DocId = str
QueryId = str
MODALITIES = ("image", "text")
"""The modalities of a document; see `Document.modality`."""
_CACHED_VALUES = 512


class LazyMapping(Mapping[str, Value]):
    """A mapping that computes values on demand and caches the 512 used last."""

    def __init__(self, names: Collection[str], make: Callable[[str], Value]) -> None:
        """`names` are unique and have fast lookup, as in a dictionary or a `pandas.Index`; `make`
        always returns the same value for a name.
        """
        self._names = names
        self._make = make
        self._made = lru_cache(_CACHED_VALUES)(make)

    def __getitem__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(name)
        return self._made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


class LazyImage(Protocol):
    """An image that is read only when it is needed."""

    @property
    def where(self) -> str:
        """The file, or row of a data set, that error messages name."""

    @property
    def stamp(self) -> str:
        """Version of the stored bytes; part of the key of everything computed from the image. It
        changes whenever the bytes may have changed.
        """

    def data(self) -> bytes:
        """Return the encoded image as stored; raises `VragError` if it cannot be read."""

    def open(self) -> Image.Image:
        """Return the decoded image: RGB, EXIF orientation applied; raises `VragError` if it is
        damaged.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a corpus: an image, a passage, a page, or an entry of a knowledge
    graph.
    """

    doc_id: DocId
    """Unique in the corpus, without white space; for iNaturalist images "<species
    folder>/<uuid>.jpg".
    """
    image: LazyImage | None = None
    """Its image; None for plain text."""
    text: str | None = None
    """Its text; None for a bare image."""
    metadata: JsonView = field(default_factory=dict)
    """Other data of the source, such as the species folder."""

    @property
    def modality(self) -> str:
        """The modality: "image" with an image, even if it has a caption or text too; otherwise
        "text".
        """
        return "text" if self.image is None else "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and its accepted answers."""

    query_id: QueryId
    """Unique in the benchmark, without white space; does not change when rows are added or removed.
    """
    text: str
    """The question."""
    image: LazyImage | None = None
    """The image that the question is about; None in Visual-RAG, whose queries are text only."""
    answers: tuple[str, ...] = ()
    """Accepted answers, any of which is correct; empty only if a benchmark hides them."""
    choices: tuple[str, ...] = ()
    """Options of a multiple-choice question, in order; empty for open questions."""
    entity: str = ""
    """What the question is about: the scientific name in Visual-RAG."""
    group: str = ""
    """The cluster for statistics: queries of one group are not independent (the species in
    Visual-RAG). Give each query its own id where all are independent.
    """
    conversation_id: str | None = None
    """The conversation this turn belongs to; None for single-turn questions."""
    turn: int = 0
    """Position in the conversation, from 0."""
    metadata: JsonView = field(default_factory=dict)
    """Other data of the source, such as the annotation's line number."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Benchmark:
    """Queries, a corpus of documents, and relevance labels (qrels)."""

    name: str
    """Short name for tables and file names."""
    fingerprint: str
    """Hash of the annotations: benchmarks with the same fingerprint have the same questions and
    documents.
    """
    queries: Mapping[QueryId, Query]
    """All queries in the order of the annotations."""
    corpus: Mapping[DocId, Document]
    """All documents."""
    qrels: Mapping[QueryId, Mapping[DocId, int]]
    """Relevance labels, 0 or more, of every judged document of every query; in
    Visual-RAG 1 marks a clue.
    """
    pools: Mapping[QueryId, tuple[DocId, ...]] | None = None
    """Candidate documents of each query; None if these are the whole corpus."""
    left_out: Mapping[QueryId, frozenset[DocId]] = field(default_factory=dict)
    """Candidate documents that a query may not be shown, such as its own image; queries without any
    are absent.
    """
    groups_are: str = "groups"
    """What the queries' groups are, in the plural, for captions: "species"."""
    blob: str = ""
    """The git blob id of the annotations file, as `git hash-object` prints it; "" if they are not
    one file, or if questions or labels were changed after reading (`derive`).
    """

    def candidates(self, query_id: QueryId) -> tuple[DocId, ...] | None:
        """Return the candidate documents of a query, or None for the whole corpus.

        In Visual-RAG these are the 200–300 images of the query's species (section 5.1).
        """
        return None if self.pools is None else self.pools[query_id]

    def searchable(self, query_id: QueryId) -> list[DocId]:
        """Return the documents that a query may find, in the order of its candidates or of the
        corpus: its candidates without those in `left_out`.
        """
        pool = self.candidates(query_id)
        left_out = self.left_out.get(query_id, frozenset())
        documents = self.corpus if pool is None else pool
        return [doc_id for doc_id in documents if doc_id not in left_out]

    @property
    def groups(self) -> dict[QueryId, str]:
        """The cluster of every query, for statistics: the species in Visual-RAG."""
        return {query_id: query.group for query_id, query in self.queries.items()}

    def relevant(self, query_id: QueryId) -> tuple[DocId, ...]:
        """Return the relevant documents of a query (label of at least 1), in the order of the
        annotations.
        """
        return tuple(doc_id for doc_id, label in self.qrels[query_id].items() if label > 0)

    def derive(self, tag: str, **changes: Any) -> Benchmark:
        """Return this benchmark with `changes` of its fields, and a fingerprint of its own: a hash
        of this one's and of `tag`, which says what was changed.
        """
        named = f"{self.fingerprint}\n{tag}"
        fingerprint = hashlib.sha256(named.encode()).hexdigest()
        return replace(self, fingerprint=fingerprint, **{"blob": "", **changes})

    def subset(self, query_ids: Collection[QueryId]) -> Benchmark:
        """Return this benchmark with the given queries only, in their order here, and all
        documents. Raises `VragError` for an unknown query.
        """
        if unknown := [query_id for query_id in query_ids if query_id not in self.queries]:
            raise VragError(f"{self.name} has no query {unknown[0]!r}.")
        wanted = set(query_ids)
        kept = {query_id: None for query_id in self.queries if query_id in wanted}
        pools, left_out = self.pools, self.left_out
        return self.derive(
            "\n".join(kept),
            queries={query_id: self.queries[query_id] for query_id in kept},
            qrels=LazyMapping(kept, self.qrels.__getitem__),
            pools=None if pools is None else LazyMapping(kept, pools.__getitem__),
            left_out={query_id: left_out[query_id] for query_id in kept if query_id in left_out},
        )

    def with_documents(self, documents: Iterable[Document]) -> Benchmark:
        """Return this benchmark with additional documents in its corpus, to show them. They have no
        label and are in no pool; only a query whose pool is the whole corpus is searched in them.
        """
        more = {document.doc_id: document for document in documents}
        return self.derive("\n".join(more), corpus={**self.corpus, **more}, blob=self.blob)

    def __repr__(self) -> str:
        return (
            f"Benchmark({self.name}@{self.fingerprint[:8]}, {len(self.queries):,} queries,"
            f" {len(self.corpus):,} documents)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The evidence chosen for one query, in the order the model sees it."""

    query_id: QueryId
    setting: str
    """The setting that chose it: zero_shot, gt_clue, first_clue, non_clue, top_k, one_in_k, m_gt,
    m_in_k, one_in_k_easy, text_rag; or a custom one (`PromptSet.with_settings`).
    """
    k: int
    """Number of documents requested; 0 for zero_shot."""
    m: int | None = None
    """Number of guaranteed clues in m_gt and m_in_k; None in the other settings."""
    draw: int = 0
    """Index of the random choice of documents, from 0 (`Answer.sample` is that of the decoding)."""
    doc_ids: tuple[DocId, ...] = ()
    """The documents in order; empty for zero_shot."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation, and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a prompt."""

    role: str
    """"system", "user" or "assistant"."""
    parts: tuple[str | LazyImage, ...]
    """Text and images in the order that the model reads them."""


Prompt = tuple[Message, ...]
"""What is sent to a model: messages in order."""


class Status(StrEnum):
    """How a call to a model or a judge ended."""

    OK = "ok"
    """The answer or verdict is usable."""
    EMPTY = "empty"
    """The model returned no text, or none where its answer is expected. This is a bad answer, but
    the model's own.
    """
    TRUNCATED = "truncated"
    """The answer was cut off at its maximum length; the text so far is kept. It counts as a bad
    answer, like `EMPTY`.
    """
    REFUSED = "refused"
    """The model's provider refused to answer."""
    TOO_LONG = "too_long"
    """The prompt does not fit into the model's context."""
    TIMEOUT = "timeout"
    """No complete answer arrived in time."""
    RATE_LIMITED = "rate_limited"
    """The endpoint accepted no more calls."""
    ERROR = "error"
    """Any other error of the call."""
    UNREADABLE = "unreadable"
    """The text is not in the requested format."""
    DAMAGED = "damaged"
    """An image could not be opened; the model was not called."""
    EARLIER_TURN = "skipped"
    """An earlier turn of the conversation failed; the model was not called."""
    STOPPED = "early_stopped"
    """The protocol ended the conversation before this turn (early stopping). The model was not
    called, and this is no failure.
    """

    @property
    def is_answer(self) -> bool:
        """Whether the model answered, including empty and truncated answers."""
        return self in (Status.OK, Status.EMPTY, Status.TRUNCATED)

    @property
    def is_transient(self) -> bool:
        """Whether a retry, or another server, may resolve the failure."""
        return self in (Status.TIMEOUT, Status.RATE_LIMITED, Status.ERROR)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no usable answer or verdict."""

    kind: Status
    """The kind of failure; never `Status.OK`."""
    words: str = ""
    """The reason as text for users; it is never parsed."""

    def __str__(self) -> str:
        kind = self.kind.replace("_", " ")
        return f"{kind}: {self.words}" if self.words else kind


PLACEHOLDER = "stand_in"
"""Field of an answer, and mark of a verdict, that takes the place of a real one in a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A model's answer, or the reason why there is none."""

    answer_id: str
    """Hash of everything that determines the answer: model, prompt, images, decoding,
    sample.
    """
    sample: int = 0
    """Index of the repetition of the decoding; 0 when greedy."""
    raw: str | None
    """The model's output, unchanged; None if the call failed."""
    fields: JsonView = field(default_factory=dict)
    """Fields parsed from `raw`: short answer, long answer, chosen option."""
    failure: Failure | None = None
    """Why there is no usable answer; None if there is one. Its kind is `EMPTY` or `TRUNCATED` if
    the model's output was empty or cut off.
    """
    sent: JsonView = field(default_factory=dict)
    """Model, decoding parameters and endpoint as they were sent; never a key."""
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Token counts as reported: prompt, completion."""

    @property
    def status(self) -> Status:
        """`Status.OK`, or the kind of the failure."""
        return self.failure.kind if self.failure else Status.OK

    @property
    def detail(self) -> str:
        """The reason of the failure; "" for a usable answer."""
        return self.failure.words if self.failure else ""

    @property
    def is_placeholder(self) -> bool:
        """Whether it takes the place of an answer in a dry run."""
        return bool(self.fields.get(PLACEHOLDER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """A verdict on one answer."""

    score: float | None
    """The verdict as a number, in [0, 1] for Visual-RAG, down to −1 for CRAG-MM; None
    when there is none, never 0 instead.
    """
    marks: frozenset[str] = frozenset()
    """Flags such as "hallucination", "redundant", "abstention"."""
    raw: str | None = None
    """The judge's output, unchanged; None if the call failed."""
    failure: Failure | None = None
    """Why there is no verdict; None when there is one."""


def ordered(items: Iterable[str], *names: object) -> list[str]:
    """Return the items in the random order determined by `names` (such as seed, query, stream,
    draw). Items are sorted by a hash of the names and the item.
    """
    prefix = "/".join(map(str, names)) + "/"
    return sorted(items, key=lambda item: hashlib.sha256((prefix + item).encode()).digest())
