"""Ambiguous questions: the paper's prompts that detect and rewrite them (A.3, A.4, A.6), strict
parsers of the replies, and a model that is asked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from vrag_kit.config import GREEDY, Entry, hardware_of
from vrag_kit.errors import VragError
from vrag_kit.generation.generators import load_generator
from vrag_kit.judging.llm_judge import Request, StructuredAsker
from vrag_kit.judging.rubric import UnparsedError, fill_template, one_line
from vrag_kit.types import Benchmark, Document, LazyImage, Message, Prompt, Query
from vrag_kit.workspace import path as project_path

CLEAR, AMBIGUOUS = "CLEAR", "AMBIGUOUS"
LONGEST = 30
"""Maximum number of words of an explanation."""
WORDS: dict[str, Any] = json.loads(  # Any: texts, lists and mappings of them
    Path(__file__).with_name("ambiguity.json").read_text(encoding="utf-8")
)
"""The prompts as data, with their source; our additions are marked."""
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL)
_LABELLED = re.compile(r"(?:[-•*]|\d+[.)])\s|rewritten question\s*:|rewrite\s*:", re.IGNORECASE)
_POINTS = re.compile(r"according to the (?:evidence|image|chart|passage)", re.IGNORECASE)


class Detection(NamedTuple):
    """A detector's result for a question."""

    status: str
    """`CLEAR` or `AMBIGUOUS`."""
    explanation: str
    """At most `LONGEST` words."""


def detection_prompt(query: Query) -> Prompt:
    """Builds the detection prompt for a question: A.3 for one with an image, A.4 for one without.
    Its first accepted answer is included for reference.
    """
    fields = {"q_esc": query.text, "a_esc": next(iter(query.answers), "")}
    if query.image is None:
        return (Message(role="user", parts=(fill_template(WORDS["without_image"], fields),)),)
    case = fill_template(WORDS["question_and_answer"], fields)
    return (Message(role="user", parts=(query.image, WORDS["with_image"] + case)),)


def query_rewrite_prompt(query: Query, evidence: Sequence[Document], explanation: str) -> Prompt:
    """Builds the prompt that rewrites a question (A.6) from evidence and the `explanation` why it
    was flagged; its own image comes first.
    """
    listed = fill_template(WORDS["flagged"], {"explanation": explanation})
    images: list[LazyImage] = []
    for item in evidence:
        if item.image is not None:
            images.append(item.image)
            listed += fill_template(WORDS["picture"], {"number": str(len(images))})
        if item.text is not None:
            listed += fill_template(WORDS["item"], {"text": one_line(item.text)})
    fields = {
        "evidence": listed.rstrip("\n"),
        "raw_question": query.text,
        "raw_answer": next(iter(query.answers), ""),
    }
    own = () if query.image is None else (query.image,)
    words = fill_template(WORDS["query_rewrite"], fields)
    return (Message(role="user", parts=(*own, *images, words)),)


def read_detection(raw: str) -> Detection:
    """Parses a reply that is one JSON object, apart from thoughts in tags and a code fence. Keys
    are "status" and "explanation", once each. Raises `UnparsedError` otherwise.
    """
    words = _THOUGHT.sub("", raw).strip()
    fenced = _FENCED.fullmatch(words)
    try:
        found = json.loads(fenced[1] if fenced else words, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        raise UnparsedError("it is not one JSON object") from error
    if not isinstance(found, dict) or set(found) != {"status", "explanation"}:
        raise UnparsedError("its keys are not status and explanation")
    status, explanation = found["status"], found["explanation"]
    if status not in (CLEAR, AMBIGUOUS):
        raise UnparsedError(f"status is {status!r}, not {CLEAR} or {AMBIGUOUS}")
    if not isinstance(explanation, str) or len(explanation.split()) > LONGEST:
        raise UnparsedError(f"explanation is no text of at most {LONGEST} words")
    return Detection(status, one_line(explanation))


def read_query_rewrite(raw: str) -> str:
    """Parses a reply to `query_rewrite_prompt`, which must be one line. Raises `UnparsedError` for
    several lines or none, a label or bullet before it, and references to the evidence, which the
    prompt forbids.
    """
    lines = [line.strip() for line in _THOUGHT.sub("", raw).splitlines() if line.strip()]
    if len(lines) != 1:
        raise UnparsedError(f"it has {len(lines)} lines, not one")
    if _LABELLED.match(lines[0]):
        raise UnparsedError("a label or bullet stands before the question")
    if _POINTS.search(lines[0]):
        raise UnparsedError("it points at the evidence")
    return lines[0]


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:  # Any: what JSON holds
    """A JSON object; raises ValueError for a key that is there twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


MOST_TOKENS = 512
"""Maximum number of tokens of a reply."""
DETECTION = ["query_id", "group", "status", "explanation", "detail"]
"""Columns of a detector's results; detail says why a status is missing ("")."""


@dataclass(frozen=True, slots=True)
class AmbiguityDetector:
    """Detects and rewrites ambiguous questions with a model; replies are stored and parsed again
    each time, and an unparsed one is requested once more.
    """

    detector: StructuredAsker
    rewriter: StructuredAsker

    @property
    def name(self) -> str:
        """The model's name."""
        return self.detector.generator.name

    def detect(self, benchmark: Benchmark) -> pd.DataFrame:
        """Returns one row per question: query_id, group, status ("CLEAR", "AMBIGUOUS"; "" if
        unparsed), explanation, detail (why there is none).
        """
        queries = list(benchmark.queries.values())
        replies = self.detector.ask(
            [
                Request(prompt=detection_prompt(query), read=read_detection, owner=query.query_id)
                for query in queries
            ]
        )
        rows = [
            (query.query_id, query.group, *(reply.value or ("", "")), str(reply.failure or ""))
            for query, reply in zip(queries, replies, strict=True)
        ]
        return pd.DataFrame(rows, columns=DETECTION)

    def rewrite_queries(self, benchmark: Benchmark, detections: pd.DataFrame) -> pd.DataFrame:
        """Rewrites each question that `detections` flag from its gold evidence: query_id, original,
        question ("" if unparsed), detail.
        """
        flagged = detections[detections["status"] == AMBIGUOUS]
        queries = [benchmark.queries[query_id] for query_id in flagged["query_id"]]
        asked = []
        for query, why in zip(queries, flagged["explanation"], strict=True):
            gold = [benchmark.corpus[name] for name in benchmark.relevant(query.query_id)]
            prompt = query_rewrite_prompt(query, gold, why)
            asked.append(Request(prompt=prompt, read=read_query_rewrite, owner=query.query_id))
        rows = [
            (query.query_id, query.text, reply.value or "", str(reply.failure or ""))
            for query, reply in zip(queries, self.rewriter.ask(asked), strict=True)
        ]
        return pd.DataFrame(rows, columns=["query_id", "original", "question", "detail"])


def load_ambiguity_detector(
    entry: Entry,
    answers_dir: Path | str,
    *,
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> AmbiguityDetector:
    """Loads a detector with the model that `entry` names, as in `load_generator`. It decodes
    greedily by default (the paper judges at temperature 0); its replies are stored in
    `answers_dir`.

    `hardware` names fields of `Hardware`. Raises `VragError` as `load_generator` does.
    """
    hardware = {"batch_size": 8, **(hardware or {})}
    decoding = {**GREEDY, "max_new_tokens": MOST_TOKENS}
    generator = load_generator(entry, decoding=decoding, hardware=hardware)

    def asker(what: str, repair: str) -> StructuredAsker:
        return StructuredAsker(
            generator=generator,
            answers_dir=project_path(answers_dir),
            hardware=hardware_of(hardware),
            what=what,
            repair=lambda reason: repair.format(reason=reason),
        )

    words = WORDS["repair"]
    return AmbiguityDetector(
        asker("detections", words["detection"]), asker("new questions", words["query"])
    )


def with_rewritten_questions(benchmark: Benchmark, rewrites: pd.DataFrame) -> Benchmark:
    """Replaces the text of questions by `rewrites` (query_id, question). Questions whose rewrite is
    "" (unparsed) stay as they are, and so do ids, answers and labels.

    Raises `VragError` for an unknown query.
    """
    pairs = list(zip(rewrites["query_id"], rewrites["question"], strict=True))
    if unknown := [name for name, _ in pairs if name not in benchmark.queries]:
        raise VragError(
            f"with_questions: query {unknown[0]!r} is not in {benchmark.name}; take rewrites of"
            " its own questions."
        )
    new = {name: words for name, words in pairs if words}
    texts = {name: replace(benchmark.queries[name], text=words) for name, words in new.items()}
    named = json.dumps([benchmark.fingerprint, "said anew", sorted(new.items())])
    fingerprint = hashlib.sha256(named.encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, queries={**benchmark.queries, **texts})
