"""From contexts to a table of answers: each context becomes a prompt, and every model
is asked.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.asking import ask_prompts
from vrag_kit.generation.generator import Generator
from vrag_kit.generation.loading import load_generator
from vrag_kit.generation.templates import render, template_of
from vrag_kit.options import Entry
from vrag_kit.types import Benchmark, Context, Prompt

COLUMNS = [
    "benchmark",
    "model",
    "setting",
    "k",
    "m",
    "draw",
    "sample",
    "query_id",
    "group",
    "doc_ids",
    "template",
    "answer",
    "status",
    "detail",
    "answer_id",
]


def ask_all(
    generator: Generator,
    benchmark: Benchmark,
    contexts: Sequence[Context],
    store: AnswerStore,
    *,
    template: str | None = None,
    batch_size: int = 16,
    samples: int = 1,
    retry_failures: bool = False,
) -> pd.DataFrame:
    """One row a context and sample, that needs nothing beside it: benchmark, model,
    setting, k, m (missing but in m_gt and m_in_k), draw, sample, query_id, group,
    doc_ids (tuple, in the order shown), template, answer, status, detail, answer_id.

    `answer` is what will be judged, None where `status`, a `Status`, is not "ok"; then
    `detail` says why, in words. `template` puts
    all contexts into one wording, instead of each setting's own. `samples` repeats
    every question, which makes sense where decoding samples. See `ask_prompts` for what
    is printed and raised.
    """
    if samples < 1:
        raise VragError(f"samples is {samples}; expected 1 or more.")
    if samples > 1 and generator.deterministic:
        raise VragError(
            f"{generator.name}: {samples} samples are asked for, but it decodes greedily, so that"
            " they would be copies. Set samples to 1, or another `decoding`."
        )
    prompts = [_prompt(benchmark, context, template) for context in contexts]
    owners = [context.query_id for context in contexts]
    rows = []
    for sample in range(samples):
        answers = ask_prompts(
            generator,
            prompts,
            store,
            owners=owners,
            batch_size=batch_size,
            sample=sample,
            rounds=samples - sample,
            retry_failures=retry_failures,
            what="answers" if samples == 1 else f"answers, sample {sample + 1} of {samples},",
        )
        rows += [
            (
                benchmark.name,
                generator.name,
                context.setting,
                context.k,
                context.m,
                context.draw,
                sample,
                context.query_id,
                benchmark.queries[context.query_id].group,
                context.doc_ids,
                template or template_of(context),
                answer.fields.get("answer"),
                answer.status.value,
                answer.detail,
                answer.answer_id,
            )
            for context, answer in zip(contexts, answers, strict=True)
        ]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"m": "Int64"})


def ask_models(
    models: Sequence[Entry],
    benchmark: Benchmark,
    contexts: Sequence[Context],
    answers_dir: Path | str,
    *,
    template: str | None = None,
    device: str = "cpu",
    decoding: str | Mapping[str, Any] = "checkpoint",
    max_new_tokens: int = 128,
    batch_size: int = 16,
    samples: int = 1,
    retry_failures: bool = False,
) -> pd.DataFrame:
    """`ask_all` for several models (what `load_generator` takes), one after another,
    over the store `answers.sqlite` in `answers_dir`.

    `batch_size` is how many prompts are answered at once: in one batch here, in
    parallel calls by an endpoint. `max_images` in a model's entry leaves out contexts
    with more images, as the paper did with two models. Raises `VragError`, before any
    is asked, for an entry that cannot be read, and when two models have the same name.
    """
    generators = [
        load_generator(
            entry,
            device=device,
            decoding=decoding,
            max_new_tokens=max_new_tokens,
            concurrency=batch_size,
        )
        for entry in models
    ]
    names = [generator.name for generator in generators]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise VragError(
            f"two models are named {twice[0]!r}; list it once, or give one a `name` in its entry."
        )
    for generator in generators:
        if missing := generator.missing():
            print(
                f"note: {generator.name}: {missing}; unless all its answers are stored, the run"
                " will stop there",
                flush=True,
            )
    tables = []
    with AnswerStore(Path(answers_dir) / "answers.sqlite") as store:
        for entry in models:
            generator = generators.pop(0)
            most = None if isinstance(entry, str) else entry.get("max_images")
            chosen = [
                context
                for context in contexts
                if most is None or context.setting == "text_rag" or len(context.doc_ids) <= most
            ]
            if len(chosen) < len(contexts):
                print(
                    f"{generator.name}: {len(contexts) - len(chosen):,} prompts with more than"
                    f" {most} images are left out, as its entry says",
                    flush=True,
                )
            tables.append(
                ask_all(
                    generator,
                    benchmark,
                    chosen,
                    store,
                    template=template,
                    batch_size=batch_size,
                    samples=samples,
                    retry_failures=retry_failures,
                )
            )
            del generator  # before the next one is loaded: two large models may not fit together
            gc.collect()
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


def _prompt(benchmark: Benchmark, context: Context, template: str | None) -> Prompt:
    shown = [
        (
            benchmark.corpus[doc_id].text
            if context.setting == "text_rag"
            else benchmark.corpus[doc_id].image
        )
        for doc_id in context.doc_ids
    ]
    if None in shown:
        what = "text" if context.setting == "text_rag" else "image"
        raise VragError(
            f"document {context.doc_ids[shown.index(None)]!r} of query {context.query_id!r} has no"
            f" {what}; the setting {context.setting} shows {what}s only."
        )
    where = {"passages": shown} if context.setting == "text_rag" else {"images": shown}
    return render(
        template or template_of(context), benchmark.queries[context.query_id].text, **where
    )  # type: ignore[arg-type]
