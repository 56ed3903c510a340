"""Every prompt of the Visual-RAG protocol is, letter for letter, what it was when it
was frozen.

`tests/data/frozen_prompts.csv` holds a hash for each setting, k and m over all
questions of the small Field Guide; `python tests/test_frozen_prompts.py` writes it
anew, which changes the protocol.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.building.questions import question_prompt
from vrag_kit.building.species import read_species_folders
from vrag_kit.building.visibility import PRESENCE_PROMPTS, ImageQuery
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
from vrag_kit.papers.visual_rag.judge import PROMPTS, RUBRIC
from vrag_kit.retrieval.metrics import oracle_run
from vrag_kit.synthetic import generate_field_guide
from vrag_kit.types import Benchmark, Context, Document, Prompt

FROZEN = Path(__file__).parent / "data" / "frozen_prompts.csv"


def test_no_prompt_has_changed_since_it_was_frozen(guide: Benchmark, guide_folder: Path) -> None:
    frozen = pd.read_csv(FROZEN, keep_default_na=False, dtype=str)
    found = prompt_hashes(guide, guide_folder)
    assert frozen.to_dict("records") == found.to_dict("records")


def prompt_hashes(guide: Benchmark, folder: Path) -> pd.DataFrame:
    """One row for each kind of prompt: kind, k, m, prompts (how many), sha256 of all of
    them.
    """
    kinds: dict[tuple[str, str, str], list[Prompt]] = defaultdict(list)
    for kind, k, m, prompt in (
        *answer_prompts(guide),
        *text_prompts(guide),
        *judge_prompts(guide),
        *builder_prompts(guide, folder),
    ):
        kinds[kind, k, m].append(prompt)
    rows = [(*names, str(len(prompts)), digest(prompts)) for names, prompts in kinds.items()]
    return pd.DataFrame(rows, columns=["kind", "k", "m", "prompts", "sha256"])


def answer_prompts(guide: Benchmark) -> Iterator[tuple[str, str, str, Prompt]]:
    run = oracle_run(guide.qrels)
    common = {"draws": 2, "seed": 0}
    contexts = [
        *zero_shot(guide),
        *gt_clue(guide, **common),
        *non_clue(guide, **common),
        *top_k(guide, run),
        *one_in_k(guide, **common),
        *one_in_k(guide, ks=[1, 5], clue_position=-1, **common),
        *one_in_k_easy(guide, **common),
        *m_gt(with_min_clues(guide, 3), ms=[1, 2, 3], **common),
        *m_in_k(with_min_clues(guide, 3), ms=[1, 2, 3], **common),
    ]
    for context in contexts:
        yield (
            context.setting,
            str(context.k),
            str(context.m or ""),
            build_prompt(guide, context, PROMPTS),
        )
        yield (
            f"{context.setting} in one wording",
            str(context.k),
            str(context.m or ""),
            build_prompt(guide, context, PROMPTS.use_template("several_images")),
        )


def text_prompts(guide: Benchmark) -> Iterator[tuple[str, str, str, Prompt]]:
    passages = {
        f"p{i}": Document(
            doc_id=f"p{i}", text=f"The text of passage {i}, with “quotes” and {{braces}}."
        )
        for i in range(10)
    }
    library = Benchmark(
        name="library", fingerprint="", queries=guide.queries, corpus=passages, qrels={}
    )
    for query_id in guide.queries:
        for k in (1, 10):
            context = Context(
                query_id=query_id, setting="text_rag", k=k, doc_ids=tuple(passages)[:k]
            )
            yield "text_rag", str(k), "", build_prompt(library, context, PROMPTS)


def judge_prompts(guide: Benchmark) -> Iterator[tuple[str, str, str, Prompt]]:
    for query in guide.queries.values():
        for answer in ("blue", "I cannot tell.\nPerhaps {red}."):
            yield "judge", "", "", RUBRIC.build_prompt(query, answer)


def builder_prompts(guide: Benchmark, folder: Path) -> Iterator[tuple[str, str, str, Prompt]]:
    folders = read_species_folders(folder / "images")
    query = next(iter(guide.queries.values()))
    image = guide.corpus[guide.candidates(query.query_id)[0]].image
    for species in folders:
        yield "question writer", "", "", question_prompt(species, "It lives in meadows.")
        look = ImageQuery("", "", query.text, "hindwings", species.called, image)
        for prompts, (write, _) in PRESENCE_PROMPTS.items():
            yield f"coarse filter, {prompts}", "", "", write(look)


def digest(prompts: list[Prompt]) -> str:
    shown = [
        [
            (
                message.role,
                [
                    part if isinstance(part, str) else {"image": Path(part.where).name}
                    for part in message.parts
                ],
            )
            for message in prompt
        ]
        for prompt in prompts
    ]
    return hashlib.sha256(json.dumps(shown, ensure_ascii=False).encode()).hexdigest()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        place = generate_field_guide("small", Path(made) / "guide")
        benchmark = load_visual_rag(
            place / "annotations.jsonl", place / "images", name="small guide"
        )
        prompt_hashes(benchmark, place).to_csv(FROZEN, index=False, lineterminator="\n")
