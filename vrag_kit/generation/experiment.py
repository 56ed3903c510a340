"""Generate a table of answers from contexts: every model is asked every prompt."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from vrag_kit.config import Decoding, Entry, check_list, read_settings
from vrag_kit.errors import VragError
from vrag_kit.generation.conversation import (
    ANSWER_COLUMNS,
    ConversationConfig,
    run_conversations,
)
from vrag_kit.generation.generators import CustomGenerator, load_generator, prompt_images
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.generation.rendering import render
from vrag_kit.generation.store import AnswerStore
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, Context, Json, Prompt, Turn
from vrag_kit.workspace import Workspace


def build_prompt(
    benchmark: Benchmark, context: Context, prompts: PromptSet, history: Sequence[Turn] = ()
) -> Prompt:
    """Return the prompt of a context, after the earlier turns; raises as `render` does."""
    evidence = [benchmark.corpus[doc_id] for doc_id in context.doc_ids]
    query = benchmark.queries[context.query_id]
    return render(prompts.template_for(context), query, evidence, history)


def ask_models(
    models: Sequence[Entry | CustomGenerator],
    benchmark: Benchmark,
    contexts: Sequence[Context],
    at: Workspace,
    *,
    prompts: PromptSet,
    decoding: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """Ask several models about contexts, one after another; return a self-contained table, one row
    per model, context and sample.

    Its columns are benchmark, model, setting, k, m (missing except in m_gt and m_in_k), draw,
    sample, query_id, group, doc_ids (tuple, in the order shown, without those that a budget leaves
    out), template, answer, status, detail, answer_id. `status` is a `Status`. `answer` is the text
    to be judged where it is "ok", "" where it is "empty", the text so far where it is "truncated",
    and None otherwise; `detail` gives the reason.

    `models` holds what `load_generator` takes, also objects. Answers are stored in the workspace's
    `answers_dir`. `decoding` names fields of `Decoding`, which are part of a stored answer's key;
    omitted fields have their defaults. `max_images` in a model's entry leaves out prompts with more
    images, as Visual-RAG did with two models. Raises `VragError`, before any is asked, for an entry
    that cannot be read, and when two models have the same name; otherwise as `run_conversations`
    does.
    """
    single = ConversationConfig(prompts=prompts)
    table = ask_conversations(
        models, benchmark, contexts, at, conversation=single, decoding=decoding
    )
    return table[list(ANSWER_COLUMNS)]


def pending_answers(
    models: Sequence[Entry | CustomGenerator],
    benchmark: Benchmark,
    contexts: Sequence[Context],
    *,
    decoding: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """Return the table of `ask_models` for one sample, before any model is asked. It has empty
    answers (""), the status "not asked", no answer_id, and a score, which is missing. Use it to try
    out an analysis of answers. Raises as `ask_models` for an entry.
    """
    check_list(models, "models")
    generators = [load_generator(entry, decoding=decoding) for entry in models]
    names = pd.DataFrame({"model": [each.name for each in generators]}, dtype=str)
    arms = pd.DataFrame(contexts, columns=[each.name for each in fields(Context)])
    table = names.merge(arms.astype({"m": "Int64"}), how="cross")
    groups = table["query_id"].map(benchmark.groups)
    common: Json = {"benchmark": benchmark.name, "sample": 0, "answer": "", "status": "not asked"}
    table = table.assign(group=groups, score=float("nan"), **common)
    return table[[name for name in (*ANSWER_COLUMNS, "score") if name in table]]


def ask_conversations(
    models: Sequence[Entry | CustomGenerator],
    benchmark: Benchmark,
    contexts: Sequence[Context],
    at: Workspace,
    *,
    conversation: ConversationConfig,
    decoding: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """Ask several models as `ask_models` does, turn by turn, following `conversation`.

    It sets the history, a search before each turn, early stopping, and the token limit of answers.
    A repeated context is asked and counted once. The columns are those of `run_conversations`. The
    status of a turn that was not asked is "early_stopped" after an early stop and "skipped" after a
    failed call.
    """
    samples = read_settings(Decoding, decoding or {}, "decoding").samples
    check_list(models, "models")
    check_list(contexts, "contexts")
    contexts = list(dict.fromkeys(contexts))
    for context in contexts:  # check before any model is loaded
        conversation.prompts.template_for(context)
    generators = [load_generator(entry, decoding=decoding, at=at) for entry in models]
    names = [generator.name for generator in generators]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise VragError(f"two models are named {twice[0]!r}; give an entry or an object a `name`.")
    tables = []
    with AnswerStore(at.answers_file) as store:
        for entry in models:
            generator = generators.pop(0)
            few = _few_enough(entry, generator.name, benchmark, contexts, conversation.prompts)
            table = run_conversations(
                generator, benchmark, few, store, conversation, samples=samples, at=at
            )
            tables.append(table)
            del generator  # before the next is loaded: two large ones may not fit together
            gc.collect()
    if not tables:
        return pd.DataFrame(columns=ANSWER_COLUMNS)
    return pd.concat(tables, ignore_index=True)


def _few_enough(
    entry: Entry | CustomGenerator,
    name: str,
    benchmark: Benchmark,
    contexts: Sequence[Context],
    prompts: PromptSet,
) -> Sequence[Context]:
    """Return the contexts whose prompts have no more images than the model's entry allows."""
    most = entry.get("max_images") if isinstance(entry, Mapping) else None
    if most is None:
        return contexts
    few = [
        context
        for context in contexts
        if len(prompt_images(build_prompt(benchmark, context, prompts))) <= most
    ]
    if n_wide := len(contexts) - len(few):
        what = f"{n_wide:,} prompts with more than {most} images"
        logger.info(f"{name}: {what} are left out, as its entry says")
    return few
