"""Long answers composed from short ones: one short question per part, with joined replies.

This is for models that know only short answers. Nothing is trained for it, and a long answer has
the errors of its short ones. Each reply is stored like any other answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Context, Query, QueryId, Status

_Row = Mapping[Hashable, object]
_CONTEXT = ["model", "setting", "k", "m", "draw", "sample"]


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """One part of a long answer, with its own question."""

    question: str
    """The question for this part."""
    sentence: Callable[[str], str] = str
    """Maps the reply to a sentence of the long answer; "" if it says nothing, as when the model
    abstains. By default the reply itself.
    """


@dataclass(frozen=True)
class DecomposedBenchmark:
    """A benchmark whose questions are split into sub-questions:

    asked = DecomposedBenchmark(benchmark, parts)
    replies = ask_models(models, asked.questions, asked.contexts(contexts), …)
    long = asked.join_answers(replies)
    """

    benchmark: Benchmark
    parts: Callable[[Query], Sequence[SubQuestion]]
    """Maps a query to its sub-questions, at least one each."""

    @cached_property
    def questions(self) -> Benchmark:
        """The benchmark with one query per part: its question about the query's image. Documents
        and labels stay the same; the queries have no options, accepted answers or conversation.

        Raises `VragError` for a query without parts.
        """
        whole = self.benchmark
        queries: dict[QueryId, Query] = {}
        qrels = {}
        pools = {}
        left_out = {}
        for query_id, parts in self._parts.items():
            query = replace(
                whole.queries[query_id], answers=(), choices=(), conversation_id=None, turn=0
            )
            for part_id, part in parts.items():
                queries[part_id] = replace(query, query_id=part_id, text=part.question)
                qrels[part_id] = whole.qrels.get(query_id, {})
                pools[part_id] = whole.candidates(query_id) or ()
                if query_id in whole.left_out:
                    left_out[part_id] = whole.left_out[query_id]
        asked = "\n".join(f"{part_id} {query.text}" for part_id, query in queries.items())
        named = f"{whole.fingerprint}\n{asked}"
        return replace(
            whole,
            fingerprint=hashlib.sha256(named.encode()).hexdigest(),
            queries=queries,
            qrels=qrels,
            pools=None if whole.pools is None else pools,
            left_out=left_out,
        )

    def contexts(self, contexts: Sequence[Context]) -> list[Context]:
        """Return each context once per part of its query, with the same documents."""
        asked: list[Context] = []
        for context in contexts:
            parts = self._parts[context.query_id]
            asked += [replace(context, query_id=part_id) for part_id in parts]
        return asked

    def join_answers(self, replies: pd.DataFrame) -> pd.DataFrame:
        """Join replies into a table of long answers, one row per query's context and sample.

        The columns are those of `replies`, and parts: the answer ids of the replies (tuple). An
        answer joins the sentences of the parts in order; if none has one, the distinct replies. It
        fails as its first failed part does; it is truncated if a part was, and empty if nothing was
        said. Raises `VragError` for replies to other questions, and if one of a query's parts is
        missing.
        """
        query_of: dict[QueryId, QueryId] = {}
        for query_id, parts in self._parts.items():
            query_of |= dict.fromkeys(parts, query_id)
        whole = replies["query_id"].map(query_of)
        strange = replies.loc[whole.isna(), "query_id"]
        if not strange.empty:
            raise VragError(
                f"replies: query {strange.iloc[0]!r} is no part of one of {self.benchmark.name}."
                " Join the answers to `questions` of the same object."
            )
        rows = []
        keys = [*(replies[name] for name in _CONTEXT), whole]
        for _, part in replies.groupby(keys, sort=False, dropna=False):
            by_part = {str(row["query_id"]): row for row in part.to_dict("records")}
            rows.append(self._joined(str(whole[part.index[0]]), by_part))
        return pd.DataFrame(rows, columns=[*replies.columns, "parts"]).astype({"m": "Int64"})

    def _joined(self, query_id: QueryId, by_part: Mapping[QueryId, _Row]) -> _Row:
        """The row of one long answer."""
        parts = self._parts[query_id]
        if missing := [part_id for part_id in parts if part_id not in by_part]:
            raise VragError(
                f"replies: {len(missing)} of {len(parts)} parts of query {query_id!r} have no"
                f" reply, the first {missing[0]!r}. Ask all of `contexts`."
            )
        rows = [by_part[part_id] for part_id in parts]
        ids = tuple(str(row["answer_id"]) for row in rows)
        named = hashlib.sha256("\n".join(ids).encode()).hexdigest()
        row = {**rows[0], "query_id": query_id, "answer_id": named, "parts": ids}
        status, detail = _worst(rows)
        if not status.is_answer:
            return {**row, "status": status.value, "detail": detail, "answer": None}
        replies = [str(each["answer"]) for each in rows]
        pairs = zip(parts.values(), replies, strict=True)
        sentences = [part.sentence(reply) for part, reply in pairs if reply]
        words = " ".join(filter(None, sentences)) or " ".join(dict.fromkeys(replies)).strip()
        if status is Status.OK and not words:
            status, detail = Status.EMPTY, "nothing was said about any part"
        return {**row, "status": status.value, "detail": detail, "answer": words}

    @cached_property
    def _parts(self) -> dict[QueryId, dict[QueryId, SubQuestion]]:
        """Query → the ids of its parts, in order → the part."""
        found = {}
        for query_id, query in self.benchmark.queries.items():
            parts = self.parts(query)
            if not parts:
                raise VragError(
                    f"query {query_id!r} of {self.benchmark.name} has no part to be asked for."
                    " Give it one, or leave it out with `benchmark.subset(query_ids)`."
                )
            found[query_id] = {f"{query_id}~{n}": part for n, part in enumerate(parts, start=1)}
        return found


def _worst(rows: Sequence[_Row]) -> tuple[Status, str]:
    """The status of a long answer and its detail: those of the first part that failed, else of the
    first that was truncated. A part that is empty only lacks.
    """
    states = [(Status(str(row["status"])), str(row["detail"])) for row in rows]
    failed = [state for state in states if not state[0].is_answer]
    truncated = [state for state in states if state[0] is Status.TRUNCATED]
    return (failed or truncated or [(Status.OK, "")])[0]
