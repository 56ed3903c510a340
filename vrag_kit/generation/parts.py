"""Compose long answers from short ones: one short question per part, with joined replies.

This is for models that know only short answers. Nothing is trained for it, and a long answer has
the errors of its short ones. Each reply is stored like any other answer.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.frames import require_columns
from vrag_kit.types import Benchmark, Context, Query, QueryId, Status


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
        for part_id, (query_id, part) in self._parts.items():
            queries[part_id] = replace(
                whole.queries[query_id],
                query_id=part_id,
                text=part.question,
                answers=(),
                choices=(),
                conversation_id=None,
                turn=0,
            )
        of = {part_id: query_id for part_id, (query_id, _) in self._parts.items()}
        asked = "\n".join(f"{part_id} {query.text}" for part_id, query in queries.items())
        named = f"{whole.fingerprint}\n{asked}"
        pools, left_out = whole.pools, whole.left_out
        return replace(
            whole,
            fingerprint=hashlib.sha256(named.encode()).hexdigest(),
            queries=queries,
            qrels={each: whole.qrels[of[each]] for each in of if of[each] in whole.qrels},
            pools=None if pools is None else {each: pools[of[each]] for each in of},
            left_out={each: left_out[of[each]] for each in of if of[each] in left_out},
        )

    def contexts(self, contexts: Sequence[Context]) -> list[Context]:
        """Return each context once per part of its query, with the same documents."""
        asked: list[Context] = []
        for context in contexts:
            parts = self._parts_of[context.query_id]
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
        needed = ["model", "setting", "k", "m", "draw", "sample", "query_id", "status", "answer"]
        require_columns(replies, needed, "joined")
        rows: dict[tuple[object, ...], dict[QueryId, dict[str, object]]] = defaultdict(dict)
        for row in replies.to_dict("records"):
            part_id = str(row["query_id"])
            if part_id not in self._parts:
                raise VragError(
                    f"joined: query {part_id!r} is no part of one of {self.benchmark.name}. Give"
                    " the answers to `questions` of the same object."
                )
            m = None if pd.isna(row["m"]) else row["m"]
            arm = (row["model"], row["setting"], row["k"], m, row["draw"], row["sample"])
            rows[(*arm, self._parts[part_id][0])][part_id] = {str(n): v for n, v in row.items()}
        joined = [self._joined(str(key[-1]), by_part) for key, by_part in rows.items()]
        table = pd.DataFrame(joined, columns=[*replies.columns, "parts"])
        return table.astype({"m": "Int64"})

    def _joined(
        self, query_id: QueryId, by_part: Mapping[QueryId, dict[str, object]]
    ) -> dict[str, object]:
        """The row of one long answer."""
        wanted = self._parts_of[query_id]
        if missing := [each for each in wanted if each not in by_part]:
            raise VragError(
                f"joined: {len(missing)} of {len(wanted)} parts of query {query_id!r} have no"
                f" reply, the first {missing[0]!r}. Ask all of `contexts`."
            )
        rows = [by_part[each] for each in wanted]
        ids = tuple(str(row["answer_id"]) for row in rows)
        named = hashlib.sha256("\n".join(ids).encode()).hexdigest()
        row = {**rows[0], "query_id": query_id, "answer_id": named, "parts": ids}
        status, detail = _worst(rows)
        if not status.is_answer:
            return {**row, "status": status.value, "detail": detail, "answer": None}
        replies = [str(each["answer"]) for each in rows]
        told = [self._parts[each][1] for each in wanted]
        sentences = [part.sentence(said) for part, said in zip(told, replies, strict=True) if said]
        words = " ".join(filter(None, sentences)) or " ".join(dict.fromkeys(replies)).strip()
        if status is Status.OK and not words:
            status, detail = Status.EMPTY, "nothing was said about any part"
        return {**row, "status": status.value, "detail": detail, "answer": words}

    @cached_property
    def _parts_of(self) -> dict[QueryId, list[QueryId]]:
        """Query's id → its parts' ids, in order."""
        found: dict[QueryId, list[QueryId]] = defaultdict(list)
        for part_id, (query_id, _) in self._parts.items():
            found[query_id].append(part_id)
        return found

    @cached_property
    def _parts(self) -> dict[QueryId, tuple[QueryId, SubQuestion]]:
        """Part's id → query's id, and part."""
        found: dict[QueryId, tuple[QueryId, SubQuestion]] = {}
        for query_id, query in self.benchmark.queries.items():
            parts = self.parts(query)
            if not parts:
                raise VragError(
                    f"query {query_id!r} of {self.benchmark.name} has no part to be asked for."
                    " Give it one, or leave it out with `benchmark.subset(query_ids)`."
                )
            for number, part in enumerate(parts, start=1):
                found[f"{query_id}~{number}"] = (query_id, part)
        return found


def _worst(rows: Sequence[Mapping[str, object]]) -> tuple[Status, str]:
    """The status of a long answer, and why: the first part's whose call failed, else that
    of one that was cut off. A part that is empty only lacks.
    """
    states = [(Status(str(row["status"])), str(row["detail"])) for row in rows]
    failed = [state for state in states if not state[0].is_answer]
    cut = [state for state in states if state[0] is Status.TRUNCATED]
    return (failed or cut or [(Status.OK, "")])[0]
