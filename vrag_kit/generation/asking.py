"""Ask a model about every context, once: what the store holds is read, the rest is asked in batches and stored as it comes."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Generator, Reply, read_answer
from vrag_kit.generation.loading import load_generator
from vrag_kit.generation.store import AnswerStore, answer_key
from vrag_kit.generation.templates import render, template_of
from vrag_kit.progress import track
from vrag_kit.types import Answer, Benchmark, Context, Prompt

COLUMNS = ["model", "setting", "k", "draw", "query_id", "template", "answer", "status", "answer_id"]
_BLOCK = 16
"""Queries whose prompts are asked together, so that their pictures recur while they are remembered."""


def ask_all(generator: Generator, benchmark: Benchmark, contexts: Sequence[Context], store: AnswerStore, *,
            template: str | None = None, batch_size: int = 16, sample: int = 0, retry_failures: bool = False) -> pd.DataFrame:
    """One row a context, in order: model, setting, k, draw, query_id, template, answer, status, answer_id.

    `answer` is what will be judged, None where `status` is not "ok". `template` puts all contexts into one wording, instead of each
    setting's own. A question that another process is asking is waited for. Prints how many answers came from the store, are new, and failed.
    """
    prompts = [_prompt(benchmark, context, template) for context in contexts]
    pixels = store.pixels(part for prompt in prompts for message in prompt for part in message.parts if not isinstance(part, str))
    keys = [answer_key(generator.fingerprint, prompt, generator.decoding, sample, pixels) for prompt in prompts]
    ids = [answer_id for answer_id, _ in keys]
    asked = {answer_id: (context, prompt, stored) for context, prompt, (answer_id, stored) in zip(contexts, prompts, keys, strict=True)}
    answers = store.read(list(asked))
    todo = [answer_id for answer_id in asked if answer_id not in answers or (retry_failures and answers[answer_id].status != "ok")]
    began, stored_before = time.monotonic(), len(asked) - len(todo)
    new = 0
    for batch in track(_batches(todo, asked, batch_size), f"answers of {generator.name}", len(todo), "prompts", size=len) if todo else ():
        ours = store.claim(batch, retry_failures=retry_failures)
        if ours:
            with store.renewing():
                replies = generator.generate([asked[answer_id][1] for answer_id in ours], sample=sample)
            store.write([_answer(*pair, generator, sample) for pair in zip(ours, replies, strict=True)], {answer_id: asked[answer_id][2] for answer_id in ours})
            new += len(ours)
    late, found = _wait(todo, asked, generator, store, sample)
    new, answers = new + late, answers | found
    failed = [answer for answer in answers.values() if answer.status != "ok"]
    print(f"answers of {generator.name}: {stored_before:,} from the store, {new:,} new, {len(todo) - new:,} by another process, {len(failed):,} failed; "
          f"{len(contexts):,} contexts in {time.monotonic() - began:.0f} s", flush=True)
    _notes(list(answers.values()))
    rows = [(generator.name, context.setting, context.k, context.draw, context.query_id, template or template_of(context),
             answers[answer_id].fields.get("answer"), answers[answer_id].status, answer_id) for context, answer_id in zip(contexts, ids, strict=True)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _notes(answers: Sequence[Answer]) -> None:
    """Print why answers failed, kind by kind with an example, and how many are cut off or without "Answer:"."""
    reasons: dict[str, list[str]] = {}
    for answer in answers:
        if answer.status != "ok":
            reasons.setdefault(answer.status.split(":")[0], []).append(answer.status)
    for examples in reasons.values():
        print(f"  failed {len(examples):,} times: {examples[0]}", flush=True)
    for mark, words in (("truncated", "cut off at max_new_tokens"), ("untagged", "without 'Answer:', judged as a whole")):
        if count := sum(bool(answer.fields.get(mark)) and answer.status == "ok" for answer in answers):
            print(f"  {count:,} answers {words}", flush=True)


def _prompt(benchmark: Benchmark, context: Context, template: str | None) -> Prompt:
    images = [benchmark.corpus[doc_id].image for doc_id in context.doc_ids]
    if None in images:
        raise VragError(f"document {context.doc_ids[images.index(None)]!r} of query {context.query_id!r} has no image; this setting shows images only.")
    return render(template or template_of(context), benchmark.queries[context.query_id].text, images)  # type: ignore[arg-type]


def _batches(todo: list[str], asked: Mapping[str, tuple[Context, Prompt, Any]], size: int) -> Iterator[Sequence[str]]:
    """Prompts of a few queries at a time, those with as many images together: little padding, and pictures that recur while they are remembered."""
    block = {query_id: i // _BLOCK for i, query_id in enumerate(dict.fromkeys(context.query_id for context, _, _ in asked.values()))}
    order = sorted(todo, key=lambda answer_id: (block[asked[answer_id][0].query_id], len(asked[answer_id][0].doc_ids)))
    for _, part in groupby(order, key=lambda answer_id: block[asked[answer_id][0].query_id]):
        together = list(part)
        for start in range(0, len(together), size):
            yield together[start : start + size]


def _answer(answer_id: str, reply: Reply, generator: Generator, sample: int) -> Answer:
    fields, status = dict(reply.fields), reply.status
    if status == "ok":
        fields |= read_answer(reply.raw or "")
        if not fields["answer"]:
            status = "empty: nothing after 'Answer:'"
    return Answer(answer_id=answer_id, sample=sample, raw=reply.raw, fields=fields, status=status, sent={"model": generator.name, **generator.decoding}, tokens=reply.tokens)


def _wait(todo: list[str], asked: Mapping[str, tuple[Context, Prompt, Any]], generator: Generator, store: AnswerStore, sample: int) -> tuple[int, dict[str, Answer]]:
    """Wait for what other processes are asking, and ask what they gave up; returns how many became ours, and all answers to `todo`."""
    new, said, known = 0, 0.0, store.read(todo)
    while missing := [answer_id for answer_id in todo if answer_id not in known]:
        for answer_id in store.claim(missing[:8]):
            with store.renewing():
                reply = generator.generate([asked[answer_id][1]], sample=sample)[0]
            store.write([_answer(answer_id, reply, generator, sample)], {answer_id: asked[answer_id][2]})
            new += 1
        if time.monotonic() - said > 30:
            print(f"waiting: another process is asking {len(missing):,} of these questions", flush=True)
            said = time.monotonic()
        time.sleep(0.2)
        known |= store.read(missing)
    return new, known


def ask_models(models: Sequence[str], benchmark: Benchmark, contexts: Sequence[Context], answers_dir: Path | str, *, template: str | None = None,
               device: str = "cpu", decoding: str = "checkpoint", max_new_tokens: int = 128, batch_size: int = 16, retry_failures: bool = False) -> pd.DataFrame:
    """`ask_all` for several models (what `load_generator` takes), one after another, over the store `answers.sqlite` in `answers_dir`.

    Raises `VragError` when two models have the same name, as two folders called alike would.
    """
    tables: dict[str, pd.DataFrame] = {}
    with AnswerStore(Path(answers_dir) / "answers.sqlite") as store:
        for spec in models:
            generator = load_generator(spec, device=device, decoding=decoding, max_new_tokens=max_new_tokens)
            if generator.name in tables:
                raise VragError(f"two models are named {generator.name!r}; rename one folder, or list it once.")
            tables[generator.name] = ask_all(generator, benchmark, contexts, store, template=template, batch_size=batch_size, retry_failures=retry_failures)
            del generator  # before the next one is loaded: two large models may not fit together
            gc.collect()
    return pd.concat(tables.values(), ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)
