"""Every prompt of Visual-RAG and MRAG-Bench is, letter for letter, what it was when it was
frozen: `tests/data` holds a hash of each kind. `python tests/papers/test_frozen_prompts.py`
(with `tests` in PYTHONPATH) writes them anew, which changes the protocols.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from conftest import ROOT
from mrag_rows import four_questions

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.building.questions import question_prompt
from vrag_kit.building.species import read_species_folders
from vrag_kit.building.visibility import PRESENCE_PROMPTS
from vrag_kit.generation import (
    build_prompt,
    gt_clue,
    m_gt,
    m_in_k,
    non_clue,
    one_in_k,
    one_in_k_easy,
    top_k,
    with_min_clues,
    zero_shot,
)
from vrag_kit.papers.mrag_bench.settings import (
    PROMPT_SETS,
    gt_rag,
    no_rag,
    retrieved_rag,
    reversed_contexts,
    rotate_options,
)
from vrag_kit.papers.visual_rag.judge import PROMPTS, RUBRIC
from vrag_kit.retrieval.metrics import oracle_run
from vrag_kit.synthetic import generate_field_guide
from vrag_kit.types import Benchmark, Context, Document, Prompt

FROZEN = ROOT / "tests" / "data" / "frozen_prompts.csv"
FROZEN_MRAG = ROOT / "tests" / "data" / "frozen_prompts_mrag_bench.csv"
PASSAGE = "Passage {} with “quotes” and {{braces}}."
Kinds = Iterator[tuple[Any, ...]]
"""The names of a kind of prompt, and a prompt."""


def test_no_prompt_of_visual_rag_has_changed(guide, guide_folder):
    assert frozen(FROZEN) == of_visual_rag(guide, guide_folder).to_dict("records")


def test_no_prompt_of_mrag_bench_has_changed():
    assert frozen(FROZEN_MRAG) == of_mrag_bench().to_dict("records")


def frozen(file: Path) -> list[dict[str, str]]:
    return pd.read_csv(file, keep_default_na=False, dtype=str).to_dict("records")


def of_visual_rag(guide: Benchmark, folder: Path) -> pd.DataFrame:
    prompts = chain(answer_prompts(guide), judge_prompts(guide), builder_prompts(guide, folder))
    return hashes(["kind", "k", "m"], prompts)


def of_mrag_bench() -> pd.DataFrame:
    return hashes(["wording", "kind", "k"], mrag_prompts())


def hashes(names: Sequence[str], prompts: Iterable[tuple[Any, ...]]) -> pd.DataFrame:
    """A row a kind of prompt, by its names: prompts (how many), sha256 of all of them."""
    kinds: dict[tuple[str, ...], list[Prompt]] = defaultdict(list)
    for *kind, prompt in prompts:
        kinds[tuple(map(str, kind))].append(prompt)
    rows = [(*kind, str(len(each)), digest(each)) for kind, each in kinds.items()]
    return pd.DataFrame(rows, columns=[*names, "prompts", "sha256"])


def digest(prompts: list[Prompt]) -> str:
    def shown(part: Any) -> object:
        return part if isinstance(part, str) else {"image": Path(part.where).name}

    whole = [[(m.role, [shown(part) for part in m.parts]) for m in prompt] for prompt in prompts]
    return hashlib.sha256(json.dumps(whole, ensure_ascii=False).encode()).hexdigest()


def answer_prompts(guide: Benchmark) -> Kinds:
    several = PROMPTS.use_template("several_images")
    common = {"draws": 2, "seed": 0}
    contexts = [
        *zero_shot(guide),
        *gt_clue(guide, **common),
        *non_clue(guide, **common),
        *top_k(guide, oracle_run(guide.qrels)),
        *one_in_k(guide, **common),
        *one_in_k(guide, ks=[1, 5], clue_position=-1, **common),
        *one_in_k_easy(guide, **common),
        *m_gt(with_min_clues(guide, 3), ms=[1, 2, 3], **common),
        *m_in_k(with_min_clues(guide, 3), ms=[1, 2, 3], **common),
    ]
    for context in contexts:
        kind, k, m = context.setting, context.k, context.m or ""
        yield kind, k, m, build_prompt(guide, context, PROMPTS)
        yield f"{kind} in one wording", k, m, build_prompt(guide, context, several)
    words = "The text of passage {}, with “quotes” and {{braces}}."
    passages = {f"p{i}": Document(doc_id=f"p{i}", text=words.format(i)) for i in range(10)}
    library = replace(guide, corpus=passages)
    for query_id, k in product(guide.queries, (1, 10)):
        found = {"doc_ids": tuple(passages)[:k], "k": k}
        context = Context(query_id=query_id, setting="text_rag", **found)
        yield "text_rag", k, "", build_prompt(library, context, PROMPTS)


def judge_prompts(guide: Benchmark) -> Kinds:
    answers = ("blue", "I cannot tell.\nPerhaps {red}.")
    for query, answer in product(guide.queries.values(), answers):
        yield "judge", "", "", RUBRIC.build_prompt(query, answer)


def builder_prompts(guide: Benchmark, folder: Path) -> Kinds:
    query = next(iter(guide.queries.values()))
    row = {"question_id": "", "question": query.text, "feature": "hindwings"}
    doc_id = guide.candidates(query.query_id)[0]
    for species in read_species_folders(folder / "images"):
        yield "question writer", "", "", question_prompt(species, "It lives in meadows.")
        for prompts, (write, _) in PRESENCE_PROMPTS.items():
            yield f"coarse filter, {prompts}", "", "", write(row, species, doc_id)


def mrag_prompts() -> Kinds:
    four = four_questions()
    texts = [Document(doc_id=f"p{n}", text=PASSAGE.format(n)) for n in (1, 2)]
    library = four.with_documents(texts)
    contexts = [
        *no_rag(four),
        *gt_rag(four),
        *retrieved_rag(four),
        *zero_shot(four),
        *non_clue(four, draws=2),
        *top_k(four, oracle_run(four.qrels), ks=[1, 3]),
        *one_in_k(four, ks=[3], draws=2),
    ]
    kinds = [(context.setting, library, context) for context in contexts]
    kinds += [("gt_rag reversed", library, context) for context in reversed_contexts(gt_rag(four))]
    rotated = rotate_options(library, 1)
    kinds += [("no_rag rotated by 1", rotated, context) for context in no_rag(four)]
    for setting in ("retrieved_text", "gt_text", "text_rag", "gt_image_and_text"):
        found = ("gt0-0", "p1", "p2")[setting != "gt_image_and_text" :]
        context = Context(query_id="0", setting=setting, k=len(found), doc_ids=found)
        kinds.append((setting, library, context))
    for kind, benchmark, context in kinds:
        for name, templates in PROMPT_SETS.items():
            yield name, kind, context.k, build_prompt(benchmark, context, templates)


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        place = generate_field_guide("small", Path(made) / "guide")
        drawn = load_visual_rag(place / "annotations.jsonl", place / "images", name="small guide")
        of_visual_rag(drawn, place).to_csv(FROZEN, index=False, lineterminator="\n")
    of_mrag_bench().to_csv(FROZEN_MRAG, index=False, lineterminator="\n")
