"""What a parameter file needs before it runs: data, models, keys and memory that are
missing, and how many calls it will make. Nothing is run, asked or fetched.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image, ImageOps

from vrag_kit.benchmarks import load_other_corpus, load_visual_rag
from vrag_kit.building.template_writer import NAME as TEMPLATE
from vrag_kit.checkpoints import check_device, find_checkpoint
from vrag_kit.errors import VragError
from vrag_kit.fieldguide.opening import DRAWN
from vrag_kit.generation import (
    ONE_IN_K,
    TOP_K,
    AnswerStore,
    Generator,
    enough_clues,
    gt_clue,
    load_generator,
    m_gt,
    m_in_k,
    non_clue,
    one_in_k,
    one_in_k_easy,
    render,
    top_k,
    zero_shot,
)
from vrag_kit.generation.generator import Size, images_of
from vrag_kit.papers.visual_rag import judge_prompt
from vrag_kit.options import Entry, read_entry
from vrag_kit.papers.visual_rag.wording import WORDING
from vrag_kit.retrieval import OPTIONS
from vrag_kit.runner.parameters import declared
from vrag_kit.runner.plan import read_plan
from vrag_kit.types import Benchmark, Context, Evidence, LazyImage, Prompt
from vrag_kit.workspace import path as project_path

Settings = Mapping[str, Any]

_CONTEXTS: dict[str, Callable[[Benchmark, Settings], list[Context]]] = {
    "zero_shot": lambda benchmark, _: zero_shot(benchmark),
    "gt_clue": lambda benchmark, settings: gt_clue(
        benchmark, draws=settings["draws"], seed=settings["seed"]
    ),
    "non_clue": lambda benchmark, settings: non_clue(
        benchmark, draws=settings["draws"], seed=settings["seed"]
    ),
    "top_k": lambda benchmark, _: top_k(benchmark, _any_run(benchmark)),
    "text_rag": lambda benchmark, _: [
        Context(query_id=query_id, setting="text_rag", k=10) for query_id in benchmark.queries
    ],
    "one_in_k": lambda benchmark, settings: one_in_k(
        benchmark,
        draws=settings["draws"],
        seed=settings["seed"],
        clue_position=settings.get("clue_position", 0),
    ),
    "one_in_k_easy": lambda benchmark, settings: one_in_k_easy(
        benchmark, draws=settings["draws"], seed=settings["seed"]
    ),
    "m_gt": lambda benchmark, settings: m_gt(
        enough_clues(benchmark, settings["most_clues"]),
        ms=_counts(settings),
        draws=settings["draws"],
        seed=settings["seed"],
    ),
    "m_in_k": lambda benchmark, settings: m_in_k(
        enough_clues(benchmark, settings["most_clues"]),
        ms=_counts(settings),
        draws=settings["draws"],
        seed=settings["seed"],
    ),
    "first_clue": lambda benchmark, _: [
        Context(
            query_id=query_id, setting="gt_clue", k=1, doc_ids=(max(benchmark.relevant(query_id)),)
        )
        for query_id in benchmark.queries
    ],
    "moved": lambda benchmark, settings: [
        context
        for k in (3, 10, 20)
        for place in (0, k // 2, -1)
        for context in one_in_k(
            benchmark,
            ks=[k],
            draws=settings["position_draws"],
            seed=settings["seed"],
            clue_position=place,
        )
    ],
}
_OWN = (None,)
ASKS = {
    "03_baselines": (("zero_shot", "gt_clue", "non_clue"), _OWN),
    "04_top_k_vs_one_in_k": (("zero_shot", "gt_clue", "non_clue", "top_k", "one_in_k"), _OWN),
    "05_gcue_curves": (("zero_shot", "gt_clue", "non_clue", "one_in_k"), (None, "several_images")),
    "06_number_of_clues": (("zero_shot", "top_k", "m_gt", "m_in_k"), _OWN),
    "07_easy_negatives": (("one_in_k", "one_in_k_easy"), _OWN),
    "08_inat24_corpus": (("top_k",), _OWN),
    "09_wikipedia_text_rag": (("zero_shot", "top_k", "text_rag"), _OWN),
    "10_abstention": (("zero_shot", "gt_clue", "non_clue", "top_k", "one_in_k"), _OWN),
    "11_judge_agreement": (("zero_shot", "gt_clue", "non_clue"), _OWN),
    "13_rouge": (("zero_shot", "gt_clue", "non_clue", "top_k", "one_in_k"), _OWN),
    "14_error_cases": (("gt_clue",), _OWN),
    "15_error_budget": (("top_k", "first_clue", "moved"), _OWN),
}
"""Notebook → settings in which it asks every question, and wordings: None is each
setting's own. `00_tour` asks nothing that these do not.
"""
FILES = ("species_list", "articles", "other_images", "webqa_annotations", "webqa_images")
"""Parameters that name a file or folder beside the benchmark's own; that of labels is
written by a notebook's panel.
"""


def check_parameters(parameter_file: Path) -> tuple[list[str], list[str]]:
    """(what there is and how much it will ask, what is missing): lines to print.

    Raises `VragError` for a file that no notebook could run with.
    """
    given = read_plan(parameter_file).given
    settings = {
        notebook.stem: _flat({**declared(notebook), **given[notebook]}) for notebook in given
    }
    found, missing = (
        [f"{parameter_file}: every name is declared by a notebook, every value has the right type"],
        [],
    )
    together: dict[str, Any] = {
        name: value for each in settings.values() for name, value in each.items()
    }
    if "device" in together:
        missing += list(_problems(lambda: check_device(together["device"])))
    found += [
        f"retriever {entry!r}: open_clip fetches its weights on the first run, unless they are in"
        " its cache"
        for entry in _entries(together, "retrievers", "retriever", "text_retriever")
        if _of_open_clip(entry)
    ]
    missing += [
        problem
        for entry in _entries(together, "retrievers", "retriever", "text_retriever")
        if (problem := _retriever_problem(entry))
    ]
    benchmark: Benchmark | None = None
    if together.get("field_guide") and not project_path(together["annotations"]).is_file():
        found.append(
            f"the {together['field_guide']} Field Guide is not drawn yet; the first notebook draws"
            f" it. To count calls before, run `vrag draw {together['field_guide']}"
            f" {Path(together['annotations']).parent}`"
        )
    else:
        try:
            benchmark = load_visual_rag(
                project_path(together["annotations"]),
                project_path(together["image_root"]),
                name=together["benchmark_name"],
            )
            found.append(f"data: {benchmark}")
        except VragError as error:
            missing.append(f"data: {error}")
    if benchmark is not None:
        missing += [
            f"{name}: {together[name]} is not there"
            for name in FILES
            if together.get(name)
            and ":" not in together[name]
            and not project_path(together[name]).exists()
        ]
    if together.get("answerer"):
        _generator(
            together["answerer"],
            {name: together[name] for name in ("device", "decoding", "max_new_tokens")},
            "answerer",
            missing,
        )
        found.append(
            "the tour asks its answerer a few prompts about one question; they are not counted here"
        )
    for name in ("writer", "filter_model"):
        if together.get(name) and together[name] != TEMPLATE:
            _generator(together[name], {"device": together["device"]}, name, missing)
    if "filter_model" in together:
        found.append(
            "20_build_a_benchmark asks its writer once a species, and its filter_model once for"
            " every question and image of its species; that is not counted here"
        )
    if any(
        "@" in str(entry)
        for entry in _entries(together, "models", "answerer", "judge", "writer", "filter_model")
    ):
        found.append(
            "endpoints are not contacted: whether a key, a name and an address are right shows at"
            " the first call of the run"
        )
    asking = {name: each for name, each in settings.items() if name in ASKS}
    models = list(
        {
            json.dumps(entry, default=str): entry
            for each in asking.values()
            for entry in each["models"]
        }.values()
    )
    names: list[str] = []
    answers = sum(
        _check_model(
            entry,
            {name: each for name, each in asking.items() if entry in each["models"]},
            benchmark,
            found,
            missing,
            names,
        )
        for entry in models
    )
    missing += [
        f"models: two are named {name!r}; list it once, or give one a `name` in its entry"
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    for judge in {
        json.dumps(each["judge"], default=str): each["judge"] for each in asking.values()
    }.values():
        _check_judge(judge, next(iter(asking.values())), benchmark, answers, found, missing)
    return found, missing


def _flat(settings: Settings) -> dict[str, Any]:
    """The parameters with what their mappings hold, each by a name of its own."""
    parts = {
        "data": ("annotations.jsonl", "images"),
        "other_corpus": (),
        "articles": (),
        "webqa": (),
    }
    flat = {"samples": 1, **settings, **settings.get("run_with", {})}
    for name in parts.keys() & settings.keys():
        source = settings[name]
        if isinstance(source, dict):
            renamed = {"data": "benchmark_name", "other_corpus": "other_name"}
            given = {
                renamed.get(name, key) if key == "name" else key: source[key] for key in source
            }
            if name == "other_corpus" and "images" in given:
                given["other_images"] = given.pop("images")
            if name == "articles" and "pages" in given:
                given["articles"] = given.pop("pages")
            if name == "webqa":
                given = {f"webqa_{key}": value for key, value in given.items()}
            flat |= given
        elif name == "data":
            edition = DRAWN.get(source, "")
            flat |= {
                "field_guide": edition,
                "annotations": f"data/{source}/annotations.jsonl",
                "image_root": f"data/{source}/images",
                "benchmark_name": source,
            }
        elif name == "other_corpus":
            flat |= {"other_images": f"data/{source}/images24", "other_name": "plates"}
        elif name == "articles":
            flat |= {"articles": ""}
    return flat


def _check_model(
    entry: Entry,
    asking: Mapping[str, Settings],
    benchmark: Benchmark | None,
    found: list[str],
    missing: list[str],
    names: list[str],
) -> int:
    """Notes what is found and missing; returns how many answers the model will give at
    most, as far as that can be told.
    """
    settings, samples = (
        next(iter(asking.values())),
        max(each["samples"] for each in asking.values()),
    )
    options = {name: settings[name] for name in ("device", "decoding", "max_new_tokens")}
    generator = _generator(
        entry, {**options, "concurrency": settings["batch_size"]}, "model", missing
    )
    if generator is None:
        return 0
    names.append(generator.name)
    if samples < 1 or (samples > 1 and generator.deterministic):
        missing.append(
            f"model {generator.name!r}: samples is {samples}; expected"
            f" 1{'' if samples < 1 else ', as it decodes greedily, or another `decoding`'}"
        )
    if benchmark is None:
        return 0
    every: dict[Prompt, None] = {}
    for name, each in asking.items():
        try:
            every.update(dict.fromkeys(_prompts(name, each, benchmark, entry)))
        except VragError as error:
            missing.append(f"{name}: {error}")
    prompts = list(every) * max(1, samples)
    _tell(
        generator,
        prompts,
        _sizes(image for prompt in prompts for image in images_of(prompt)),
        _spent(settings, generator.name),
        found,
        missing,
    )
    return len(prompts)


def _check_judge(
    entry: Entry,
    settings: Settings,
    benchmark: Benchmark | None,
    answers: int,
    found: list[str],
    missing: list[str],
) -> None:
    if entry == "rule":
        found.append("judge: the rule judge, which compares words and asks nobody")
        return
    generator = _generator(
        entry, {"device": settings["device"], "max_new_tokens": 256}, "judge", missing
    )
    if generator is None or benchmark is None:
        return
    per_query = max(1, -(-answers * settings["judge_samples"] // len(benchmark.queries)))
    prompts = [
        judge_prompt(
            query,
            "an answer of some twenty words, as long as those that models give to such questions "
            * 2,
        )
        for query in benchmark.queries.values()
    ]
    found.append(
        "the judge's calls are counted as if no two answers to a question were equal; equal ones"
        " are judged once"
    )
    _tell(generator, prompts * per_query, {}, _spent(settings, generator.name), found, missing)


def _generator(
    entry: Entry, options: Mapping[str, Any], what: str, missing: list[str]
) -> Generator | None:
    """The model, when all its files are here; what is missing is noted."""
    if problem := _not_here(entry, what):
        missing.append(problem)
        return None
    try:
        generator = load_generator(entry, **options)
    except VragError as error:
        missing.append(str(error))
        return None
    if lack := generator.missing():
        missing.append(f"{what} {generator.name!r}: {lack}")
    return generator


def _spent(settings: Settings, name: str) -> float:
    """What a model has cost so far in the run's store."""
    path = project_path(settings["answers_dir"]) / "answers.sqlite"
    if not path.is_file():
        return 0.0
    with AnswerStore(path) as store:
        return store.spent(name)


def _tell(
    generator: Generator,
    prompts: list[Prompt],
    sizes: Mapping[str, Size],
    spent: float,
    found: list[str],
    missing: list[str],
) -> None:
    forecast = generator.forecast(prompts, sizes)
    found.append(f"{generator!r}\n  {forecast}")
    if forecast.misfits:
        missing.append(
            f"model {generator.name!r}: {forecast.misfits:,} prompts will not fit; see its forecast"
        )
    if (
        generator.max_cost is not None
        and forecast.cost is not None
        and spent + forecast.cost > generator.max_cost
    ):
        so_far = (
            f", after {spent:,.2f} so far (answers that are stored are counted again here)"
            if spent
            else ""
        )
        missing.append(
            f"model {generator.name!r}: it will cost about {forecast.cost:,.2f} US dollars{so_far},"
            f" and its max_cost is {generator.max_cost:g}"
        )


def _prompts(
    notebook: str, settings: Settings, benchmark: Benchmark, entry: Entry
) -> Iterator[Prompt]:
    """What a notebook asks a model, as `ask_models` would, but for the images that a
    retriever will find.
    """
    most = None if isinstance(entry, str) else entry.get("max_images")
    for part in _corpora(settings, benchmark):
        for context in (
            context
            for setting in ASKS[notebook][0]
            for context in _CONTEXTS[setting](part, settings)
        ):
            passage = Evidence(doc_id="any", text="word " * settings.get("chunk_tokens", 0))
            evidence = [
                passage if context.setting == "text_rag" else part.corpus[doc_id]
                for doc_id in context.doc_ids or ["any"] * 10 * (context.setting == "text_rag")
            ]
            if most is None or context.setting == "text_rag" or len(context.doc_ids) <= most:
                for template in ASKS[notebook][1]:
                    chosen = (
                        WORDING.template(template) if template else WORDING.template_of(context)
                    )
                    yield render(chosen, part.queries[context.query_id], evidence)


def _corpora(settings: Settings, benchmark: Benchmark) -> Iterator[Benchmark]:
    """The benchmark, and if the notebook has a second corpus and it is there, the same
    questions over that.
    """
    yield benchmark
    if "other_images" in settings and project_path(settings["other_images"]).is_dir():
        yield load_other_corpus(
            benchmark, project_path(settings["other_images"]), name=settings["other_name"]
        )


def _counts(settings: Settings) -> range:
    return range(1, settings["most_clues"] + 1)


def _any_run(benchmark: Benchmark) -> pd.DataFrame:
    """A run as deep as the largest k, of the first candidates: as many images as a real
    one, though others.
    """
    pools = {
        query_id: benchmark.candidates(query_id) or tuple(benchmark.corpus)
        for query_id in benchmark.queries
    }
    return pd.DataFrame(
        [
            (query_id, doc_id, rank)
            for query_id, pool in pools.items()
            for rank, doc_id in enumerate(pool[: max(*TOP_K, *ONE_IN_K)], start=1)
        ],
        columns=["query_id", "doc_id", "rank"],
    )


def _sizes(images: Iterable[LazyImage]) -> dict[str, Size]:
    """Width and height of each picture, upright, from its file's first bytes."""
    unique = {image.where: image for image in images}

    def size(image: LazyImage) -> Size:
        try:
            with Image.open(io.BytesIO(image.data())) as picture:
                return (
                    ImageOps.exif_transpose(picture).size
                    if picture.getexif().get(0x0112, 1) != 1
                    else picture.size
                )
        except OSError as error:
            raise VragError(
                f"{image.where}: not a readable picture ({error}). `vrag check` with annotations"
                " and image folder lists every damaged one."
            ) from error

    with ThreadPoolExecutor() as pool:
        return dict(zip(unique, pool.map(size, unique.values()), strict=True))


def _entries(settings: Settings, *names: str) -> list[Entry]:
    values = [
        value
        for name in names
        for value in (
            settings.get(name) if isinstance(settings.get(name), list) else [settings.get(name)]
        )
    ]
    return list({json.dumps(value, default=str): value for value in values if value}.values())


def _retriever_problem(entry: Entry) -> str:
    """What speaks against a retriever, as far as that can be told without loading it;
    "" when nothing.
    """
    try:
        spec, _ = read_entry(entry, OPTIONS, "retriever")
        if spec.startswith((".", "/", "~")) or spec.count("/") > 1:
            find_checkpoint(spec)
    except VragError as error:
        return str(error)
    return _not_here(entry, "retriever")


def _of_open_clip(entry: Entry) -> bool:
    import open_clip

    return (
        isinstance(entry, str)
        and entry.count("/") == 1
        and not project_path(entry).is_dir()
        and entry.partition("/")[0] in open_clip.list_models()
    )


def _not_here(entry: Entry, what: str) -> str:
    """Why an entry's checkpoint is not on this machine, as far as that can be told
    without loading it; "" when nothing speaks against it.
    """
    from huggingface_hub import try_to_load_from_cache

    if not isinstance(entry, str | Mapping):
        return f'{what}: found {entry!r}, expected a name, or a mapping with "model" and options'
    spec = entry if isinstance(entry, str) else str(entry.get("model"))
    if (
        "@" in spec
        or project_path(spec).is_dir()
        or spec.startswith((".", "/", "~"))
        or spec.count("/") != 1
        or _of_open_clip(spec)
    ):
        # an endpoint, a folder, or something that loading will explain; open_clip keeps its
        # weights in a cache of its own
        return ""
    revision = (
        None if isinstance(entry, str) or entry.get("revision") is None else str(entry["revision"])
    )
    files = ("config.json", "adapter_config.json", "modules.json")
    if any(
        isinstance(try_to_load_from_cache(spec, name, revision=revision), str) for name in files
    ):
        return ""
    return (
        f"{what} {spec!r} is not on this machine yet; the first run fetches it, or `hf download"
        f" {spec}{f' --revision {revision}' if revision else ''}` does now"
    )


def _problems(action: Callable[[], object]) -> Iterator[str]:
    try:
        action()
    except VragError as error:
        yield str(error)
