"""From contexts to a table of answers: every model is asked every prompt."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.forecast import current_forecast
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.asking_options import Asking
from vrag_kit.generation.conversations import without_later_turns
from vrag_kit.generation.generator import Generator, images_of
from vrag_kit.generation.loading import load_generator
from vrag_kit.generation.own_answerer import AnswererClass
from vrag_kit.generation.rendering import Rendered, render
from vrag_kit.generation.talk import Talk
from vrag_kit.generation.talking import COLUMNS, TALK_COLUMNS, Inquiry
from vrag_kit.generation.wording import Wording
from vrag_kit.options import Entry, check_list
from vrag_kit.types import Benchmark, Context, Prompt, Turn


def prompt_of(
    benchmark: Benchmark, context: Context, wording: Wording, history: Sequence[Turn] = ()
) -> Prompt:
    """What a model is sent for a context, after what was said before; raises as
    `render` does.
    """
    evidence = [benchmark.corpus[doc_id] for doc_id in context.doc_ids]
    query = benchmark.queries[context.query_id]
    return render(wording.template_of(context), query, evidence, history)


def ask_all(
    generator: Generator,
    benchmark: Benchmark,
    contexts: Sequence[Context],
    store: AnswerStore,
    *,
    wording: Wording,
    how: Asking | None = None,
) -> pd.DataFrame:
    """One row a context and sample, that needs nothing beside it: benchmark, model,
    setting, k, m (missing but in m_gt and m_in_k), draw, sample, query_id, group,
    doc_ids (tuple, in the order shown; those that found no room are not among them),
    template, answer, status, detail, answer_id.

    `status` is a `Status`, and `answer` what was said: what will be judged where it is
    "ok", "" where it is "empty", the words so far where it is "truncated", and None
    otherwise, where nothing was; `detail` says why, in words. See `ask_prompts` for
    what is printed and raised; raises `VragError` also for several samples of a model
    that decodes greedily.
    """
    inquiry = Inquiry(
        generator=generator,
        benchmark=benchmark,
        store=store,
        talk=Talk(wording=wording),
        how=how or Asking(),
    )
    return inquiry.table(contexts)[list(COLUMNS)]


def ask_models(
    models: Sequence[Entry | AnswererClass],
    benchmark: Benchmark,
    contexts: Sequence[Context],
    answers_dir: Path | str,
    *,
    wording: Wording,
    run_with: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """`ask_all` for several models (what `load_generator` takes, also objects), one after another,
    over the store `answers.sqlite` in `answers_dir`.

    `run_with` names fields of `Asking`: device, decoding, max_new_tokens, batch_size,
    samples, retry_failures. `max_images` in a model's entry leaves out prompts with
    more images, as Visual-RAG did with two models. Raises `VragError`, before any is
    asked, for an entry that cannot be read, and when two models have the same name.
    """
    talk = Talk(wording=wording)
    table = ask_conversations(
        models, benchmark, contexts, answers_dir, talk=talk, run_with=run_with
    )
    return table[list(COLUMNS)]


def to_ask(
    models: Sequence[Entry | AnswererClass],
    benchmark: Benchmark,
    contexts: Sequence[Context],
    *,
    run_with: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """The table that `ask_models` gives for one sample, before anything is asked: without
    words (answer ""), status "not asked", no answer_id, and score, which is missing. What
    is done with answers can be tried on it. Raises as `ask_models` for an entry.
    """
    how = Asking.of(run_with or {})
    check_list(models, "models")
    arms = [
        (each.setting, each.k, each.m, each.draw, 0, each.query_id, each.doc_ids)
        for each in contexts
    ]
    names = ["setting", "k", "m", "draw", "sample", "query_id", "doc_ids"]
    table = pd.DataFrame(arms, columns=names).astype({"m": "Int64"})
    groups = table["query_id"].map(benchmark.groups)
    table = table.assign(group=groups, answer="", status="not asked", score=float("nan"))
    parts = [table.assign(model=_load(entry, how).name) for entry in models]
    planned = pd.concat(parts or [table.assign(model="")[:0]], ignore_index=True)
    return planned.assign(benchmark=benchmark.name)[["benchmark", "model", *table.columns]]


def ask_conversations(
    models: Sequence[Entry | AnswererClass],
    benchmark: Benchmark,
    contexts: Sequence[Context],
    answers_dir: Path | str,
    *,
    talk: Talk,
    run_with: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """As `ask_models`, turn by turn as `talk` says: with a history, a search for every
    turn, an early stop, answers cut.

    The columns are those of `ask_all`, and `TALK_COLUMNS`. The status of a turn that was
    not asked is "stopped" after an early stop and "earlier_turn" after a failed call.
    """
    how = Asking.of(run_with or {})
    check_list(models, "models")
    contexts = _each_once(contexts)
    for context in contexts:  # what cannot be asked is said before anything is loaded
        talk.wording.template_of(context)
        _check_known(context, benchmark)
    generators = _opened(models, how)
    tables = []
    prompts: dict[Context, Rendered] = {}
    with AnswerStore(Path(answers_dir) / "answers.sqlite") as store:
        for entry in models:
            model = generators.pop(0)
            chosen = _few_enough(entry, model.name, benchmark, contexts, talk.wording)
            inquiry = Inquiry(
                generator=model,
                benchmark=benchmark,
                store=store,
                talk=talk,
                how=how,
                prompts=prompts,
            )
            tables.append(inquiry.table(chosen))
            del model, inquiry  # before the next is loaded: two large ones may not fit together
            if "torch" in sys.modules and not current_forecast():  # weights may have been loaded
                gc.collect()
    if not tables:
        print("note: no model is named, so nothing is asked", flush=True)
        return pd.DataFrame(columns=[*COLUMNS, *TALK_COLUMNS])
    return pd.concat(tables, ignore_index=True)


def _opened(models: Sequence[Entry | AnswererClass], how: Asking) -> list[Generator]:
    """All models, without their weights; what one lacks is printed."""
    generators = [_load(entry, how) for entry in models]
    _check_names([generator.name for generator in generators])
    for generator in generators:
        if missing := generator.missing():
            print(
                f"note: {generator.name}: {missing}; unless all its answers are stored, the run"
                " will stop there",
                flush=True,
            )
    return generators


def _load(entry: Entry | AnswererClass, how: Asking) -> Generator:
    return load_generator(
        entry,
        device=how.device,
        decoding=how.decoding,
        max_new_tokens=how.max_new_tokens,
        concurrency=how.batch_size,
    )


def _each_once(contexts: Sequence[Context]) -> list[Context]:
    """The contexts without repeats, in order; says how many there were."""
    check_list(contexts, "contexts")
    counts = Counter(contexts)
    if repeats := len(contexts) - len(counts):
        ((most, times),) = counts.most_common(1)
        print(
            f"note: {repeats:,} of {len(contexts):,} contexts are repeats, as of {most.setting!r},"
            f" k = {most.k}, query {most.query_id!r}, which is there {times} times; each is asked"
            " and counted once",
            flush=True,
        )
    return list(counts)


def _check_known(context: Context, benchmark: Benchmark) -> None:
    """Raise `VragError` for a question or document that the benchmark does not have."""
    unknown = [each for each in context.doc_ids if each not in benchmark.corpus]
    if context.query_id in benchmark.queries and not unknown:
        return
    found = f"document {unknown[0]!r}" if unknown else f"question {context.query_id!r}"
    raise VragError(
        f"a context of the setting {context.setting!r}, query {context.query_id!r}: found the"
        f" {found}, which is none of {benchmark.name}. Make contexts for this benchmark, or give"
        " the one that they were made for."
    )


def _check_names(names: Sequence[str]) -> None:
    """Raise `VragError` when two models have one name."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise VragError(
            f"two models are named {twice[0]!r}; list it once, or give one a `name`: in its entry,"
            " or as an attribute of your own object."
        )


def _few_enough(
    entry: Entry | AnswererClass,
    name: str,
    benchmark: Benchmark,
    contexts: Sequence[Context],
    wording: Wording,
) -> Sequence[Context]:
    """The contexts whose prompts have no more images than the model's entry allows; of
    a conversation those before its first prompt with more.
    """
    most = entry.get("max_images") if isinstance(entry, Mapping) else None
    if most is None:
        return contexts
    wide = {
        context
        for context in contexts
        if len(images_of(prompt_of(benchmark, context, wording))) > most
    }
    if not wide:
        return contexts
    chosen = without_later_turns(benchmark, contexts, wide)
    later = len(contexts) - len(chosen) - len(wide)
    turns = f", with {later:,} later turns of their conversations" if later else ""
    print(
        f"{name}: {len(wide):,} prompts with more than {most} images are left out{turns}, as its"
        " entry says",
        flush=True,
    )
    return chosen
