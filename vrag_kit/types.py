"""The words of the kit, frozen dataclasses: from query and evidence to judgment.

They are the smallest set that serves Visual-RAG, MRAG-Bench, MRAG-Suite and CRAG-MM. A
question's journey is `Query` → run → `Context` → `Prompt` → `Answer` → `Judgment` → a
row of a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from PIL import Image

from vrag_kit.errors import VragError
from vrag_kit.made import Made
from vrag_kit.outcomes import Failure as Failure  # words of the kit as well
from vrag_kit.outcomes import Status as Status
from vrag_kit.plain import JsonView

DocId = str
QueryId = str
MODALITIES = ("image", "text")
"""What a document may be shown as; see `Evidence.modality`."""


class LazyImage(Protocol):
    """A picture that is read only when someone looks at it."""

    @property
    def where(self) -> str:
        """The file, or row of a data set, that error messages name."""

    @property
    def stamp(self) -> str:
        """Changes whenever the stored bytes may have changed; part of the key of
        everything computed from the picture.
        """

    def data(self) -> bytes:
        """The encoded picture as stored; raises `VragError` when it cannot be read."""

    def open(self) -> Image.Image:
        """The decoded picture: RGB, EXIF orientation applied; raises `VragError` when
        it is damaged.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One document of a corpus: an image, a passage, a page, or an entry of a knowledge
    graph.
    """

    doc_id: DocId
    """Unique in the corpus, without white space; for iNaturalist images "<species
    folder>/<uuid>.jpg".
    """
    image: LazyImage | None = None
    """What it shows; None for plain text."""
    text: str | None = None
    """What it says; None for a bare image."""
    metadata: JsonView = field(default_factory=dict)
    """Anything else the source tells, such as the species folder."""

    @property
    def modality(self) -> str:
        """ "image" for what shows something, be it with a caption or a page's text, and
        "text" for what only says something.
        """
        return "text" if self.image is None else "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question and what counts as an answer."""

    query_id: QueryId
    """Unique in the benchmark, without white space; does not change when rows are added
    or removed.
    """
    text: str
    """The question."""
    image: LazyImage | None = None
    """The picture the question is asked about; None in Visual-RAG, whose queries are
    text only.
    """
    answers: tuple[str, ...] = ()
    """Accepted answers, any one is right; empty only where a benchmark hides them."""
    choices: tuple[str, ...] = ()
    """Options of a multiple-choice question, in order; empty for open questions."""
    entity: str = ""
    """What the question is about: the scientific name in Visual-RAG."""
    group: str = ""
    """The cluster for statistics: queries of one group are not independent (the species
    in Visual-RAG).
    """
    conversation_id: str | None = None
    """The conversation this turn belongs to; None for single-turn questions."""
    turn: int = 0
    """Position in the conversation, from 0."""
    metadata: JsonView = field(default_factory=dict)
    """Anything else the source tells, such as the annotation's line number."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Benchmark:
    """Queries, the corpus they are asked of, and which documents answer them."""

    name: str
    """Short name for tables and file names."""
    fingerprint: str
    """Hash of the annotations: two benchmarks with the same fingerprint ask the same
    questions of the same documents.
    """
    queries: Mapping[QueryId, Query]
    """All queries in the order of the annotations."""
    corpus: Mapping[DocId, Evidence]
    """All documents."""
    qrels: Mapping[QueryId, Mapping[DocId, int]]
    """Relevance labels, 0 or more, of every judged document of every query; in
    Visual-RAG 1 marks a clue.
    """
    pools: Mapping[QueryId, tuple[DocId, ...]] | None = None
    """The documents that a query is searched in; None when it is the whole corpus."""
    left_out: Mapping[QueryId, frozenset[DocId]] = field(default_factory=dict)
    """Documents that a query may not be shown, though they are among its candidates,
    such as its own picture; queries without any are absent.
    """
    groups_are: str = "groups"
    """What the queries' groups are, in the plural, as captions say it: "species"."""
    read_from: tuple[str, str] = ("", "")
    """The fingerprint as it was read, and the blob id of the annotations (`git_blob`)."""

    @property
    def blob(self) -> str:
        """What `git hash-object` prints of the annotations file; "" where they are not one
        file, and of questions or labels that were changed since they were read.
        """
        fingerprint, blob = self.read_from
        return blob if fingerprint == self.fingerprint else ""

    def candidates(self, query_id: QueryId) -> tuple[DocId, ...] | None:
        """The documents that `query_id` is searched in, or None for the whole corpus.

        In Visual-RAG these are the 200–300 images of the query's species (section 5.1).
        """
        return None if self.pools is None else self.pools[query_id]

    @property
    def groups(self) -> dict[QueryId, str]:
        """The cluster of every query, as statistics need it: the species in Visual-RAG."""
        return {query_id: query.group for query_id, query in self.queries.items()}

    def relevant(self, query_id: QueryId) -> tuple[DocId, ...]:
        """The documents that answer `query_id` (label of at least 1), in the order of
        the annotations.
        """
        return tuple(doc_id for doc_id, label in self.qrels[query_id].items() if label > 0)

    def query_at(self, number: int) -> Query:
        """The query at a place in the order of the annotations, from 0; as in a list −1
        is the last. Raises `VragError` where there is none.
        """
        count = len(self.queries)
        if type(number) is not int or not -count <= number < count:
            expected = f"0 to {count - 1}, such as {min(11, count - 1)}" if count else "no number"
            raise VragError(
                f"{self.name} has {count:,} queries and none with the number {number!r}; expected"
                f" {expected}."
            )
        return list(self.queries.values())[number]

    def subset(self, query_ids: Collection[QueryId]) -> Benchmark:
        """The same benchmark with these queries only, in their order here; documents
        stay. Raises `VragError` for a query it does not have.
        """
        if unknown := [query_id for query_id in query_ids if query_id not in self.queries]:
            raise VragError(
                f"{self.name} has no query {unknown[0]!r}; its queries are"
                f" {', '.join(list(self.queries)[:3])}, …."
            )
        wanted = set(query_ids)
        kept = {query_id: None for query_id in self.queries if query_id in wanted}
        named = "\n".join([self.fingerprint, *kept])
        pools, left_out = self.pools, self.left_out
        return replace(
            self,
            fingerprint=hashlib.sha256(named.encode()).hexdigest(),
            queries={query_id: self.queries[query_id] for query_id in kept},
            qrels=Made(kept, self.qrels.__getitem__),
            pools=None if pools is None else Made(kept, pools.__getitem__),
            left_out={query_id: left_out[query_id] for query_id in kept if query_id in left_out},
        )

    def with_documents(self, documents: Iterable[Evidence]) -> Benchmark:
        """The same benchmark with these documents in its corpus too, to show them: they
        have no label and are in no pool, so that no query is searched in them unless
        its pool is the whole corpus.
        """
        more = {document.doc_id: document for document in documents}
        named = hashlib.sha256("\n".join([self.fingerprint, *more]).encode()).hexdigest()
        return replace(
            self,
            fingerprint=named,
            corpus={**self.corpus, **more},
            read_from=(named, self.blob),
        )

    def __repr__(self) -> str:
        return (
            f"Benchmark({self.name}@{self.fingerprint[:8]}, {len(self.queries):,} queries,"
            f" {len(self.corpus):,} documents)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The evidence chosen for one question, in the order the model will see it."""

    query_id: QueryId
    setting: str
    """How it was chosen: zero_shot, gt_clue, first_clue, non_clue, top_k, one_in_k, m_gt,
    m_in_k, one_in_k_easy, text_rag; or one's own (`Wording.with_settings`).
    """
    k: int
    """Number of documents asked for; 0 for zero_shot."""
    m: int | None = None
    """Number of clues that are guaranteed, in m_gt and m_in_k; None in the other
    settings.
    """
    draw: int = 0
    """Which random choice of documents this is, from 0 (the decoding's repetition is
    `Answer.sample`).
    """
    doc_ids: tuple[DocId, ...] = ()
    """The documents, first seen first; empty for zero_shot."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What was asked before in a conversation, and what was answered."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a prompt."""

    role: str
    """"system", "user" or "assistant"."""
    parts: tuple[str | LazyImage, ...]
    """Text and images in the order the model reads them."""


Prompt = tuple[Message, ...]
"""What is sent to a model: messages in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model said, or why it said nothing."""

    answer_id: str
    """Hash of everything that determines the answer: model, prompt, images, decoding,
    sample.
    """
    sample: int = 0
    """Which repetition of the decoding this is; 0 when greedy."""
    raw: str | None
    """The model's words, unchanged; None when the call failed."""
    fields: JsonView = field(default_factory=dict)
    """What was read out of `raw`: short answer, long answer, chosen letter."""
    failure: Failure | None = None
    """Why there is no usable answer; None when there is one. Of kind `EMPTY` or
    `TRUNCATED` when the model itself left it so.
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
        """The failure's words; "" for a usable answer."""
        return self.failure.words if self.failure else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """A verdict on one answer, or on one claim of it."""

    answer_id: str
    """The answer's; "" where verdicts come in the order of the answers, as from `judge`.
    """
    target: tuple[str, DocId] | None = None
    """(claim, document) for claim-level judging; None when the whole answer is judged.
    """
    label: str
    """The verdict in words; "" when unreadable."""
    score: float | None
    """The verdict as a number, in [0, 1] for Visual-RAG, down to −1 for CRAG-MM; None
    when there is none, never 0 instead.
    """
    marks: frozenset[str] = frozenset()
    """Remarks such as "hallucination", "redundant", "abstention"."""
    raw: str | None = None
    """The judge's words, unchanged; None when the call failed."""
    failure: Failure | None = None
    """Why there is no verdict; None when there is one."""

    @property
    def status(self) -> Status:
        """`Status.OK`, or the kind of the failure."""
        return self.failure.kind if self.failure else Status.OK
