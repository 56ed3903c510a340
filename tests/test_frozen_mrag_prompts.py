"""Every prompt of MRAG-Bench's two wordings is, letter for letter, what it was when it
was frozen, and reads as the paper and its code have it.

`python tests/test_frozen_mrag_prompts.py` writes `tests/data/frozen_prompts_mrag_bench.csv`
anew, which changes the protocol.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest
from mrag_rows import four_questions
from test_frozen_prompts import digest

from vrag_kit.generation import build_prompt, non_clue, one_in_k, top_k, zero_shot
from vrag_kit.papers.mrag_bench.settings import (
    PROMPT_SETS,
    gt_rag,
    no_rag,
    retrieved_rag,
    reversed_contexts,
    rotate_options,
)
from vrag_kit.retrieval.metrics import oracle_run
from vrag_kit.types import Benchmark, Context, Document, Prompt

FROZEN = Path(__file__).parent / "data" / "frozen_prompts_mrag_bench.csv"
FOUR = four_questions()
TEXTS = tuple(
    Document(doc_id=f"p{n}", text=f"Passage {n} with “quotes” and {{braces}}.") for n in (1, 2)
)
LIBRARY = FOUR.with_documents(TEXTS)
CHOICES = "(A) wood_rabbit\n(B) Eastern cottontail\n(C) Marsh rabbit\n(D) hare\n"


def words(prompt: Prompt) -> str:
    """The prompt as text, pictures as <name>."""
    (message,) = prompt
    assert message.role == "user"
    return "".join(
        part if isinstance(part, str) else f"<{Path(part.where).stem}>" for part in message.parts
    )


def asked(contexts: list[Context], prompt_set: str, query_id: str = "0") -> str:
    (context,) = [each for each in contexts if each.query_id == query_id]
    return words(build_prompt(LIBRARY, context, PROMPT_SETS[prompt_set]))


def test_the_paper_asks_as_it_prints() -> None:
    tail = f"\nQuestion: Which animal is this?\nChoices:\n{CHOICES}Answer:"
    assert asked(no_rag(FOUR), "paper") == (
        "Instruction: Answer with the option’s letter from the given choices directly.\n<0>" + tail
    )
    assert asked(gt_rag(FOUR), "paper") == (
        "Instruction: You will be given one question concerning several images. The first image"
        " is the input image, others are retrieved examples to help you. Answer with the option’s"
        " letter from the given choices directly.\n<0><gt0-0><gt0-1><gt0-2><gt0-3><gt0-4>" + tail
    )


def test_the_code_asks_as_its_loader_does() -> None:
    tail = (
        "\nWhich animal is this?\n Choices:\n"
        "A: wood_rabbit\nB: Eastern cottontail\nC: Marsh rabbit\nD: hare"
    )
    assert asked(no_rag(FOUR), "code") == (
        "Answer with the option's letter from the given choices directly. <0>" + tail
    )
    assert asked(retrieved_rag(FOUR), "code") == (
        "You will be given one question concerning several images. The first image is the input"
        " image, others are retrieved examples to help you. Answer with the option's letter from"
        " the given choices directly. <0><gt0-0><no0-0><no0-1><no0-2><no0-3>" + tail
    )


@pytest.mark.parametrize("prompt_set", PROMPT_SETS)
def test_incomplete_has_two_pictures_and_the_same_words(prompt_set: str) -> None:
    one, five = asked(gt_rag(FOUR), prompt_set, "1"), asked(gt_rag(FOUR), prompt_set, "0")
    assert "<1><gt1-0>\n" in one
    assert one.split("<")[0] == five.split("<")[0]


@pytest.mark.parametrize("prompt_set", PROMPT_SETS)
def test_passages_stand_numbered_behind_the_pictures(prompt_set: str) -> None:
    texts = tuple(each.doc_id for each in TEXTS)
    for setting, doc_ids in (("gt_text", texts), ("gt_image_and_text", ("gt0-0", *texts))):
        context = Context(query_id="0", setting=setting, k=len(doc_ids), doc_ids=doc_ids)
        said = asked([context], prompt_set)
        pictures = "<0>" if setting == "gt_text" else "<0><gt0-0>"
        assert f"{pictures}\nPassage 1: Passage 1 with “quotes” and {{braces}}.\nPassage 2:" in said


def test_no_prompt_has_changed_since_it_was_frozen() -> None:
    frozen = pd.read_csv(FROZEN, keep_default_na=False, dtype=str)
    assert frozen.to_dict("records") == prompt_hashes().to_dict("records")


def prompt_hashes() -> pd.DataFrame:
    """One row for each wording, kind and k: prompts (how many), sha256 of all of them."""
    kinds: dict[tuple[str, str, str], list[Prompt]] = defaultdict(list)
    for kind, benchmark, context in _asked():
        for name, prompts in PROMPT_SETS.items():
            kinds[name, kind, str(context.k)].append(build_prompt(benchmark, context, prompts))
    rows = [(*names, str(len(prompts)), digest(prompts)) for names, prompts in kinds.items()]
    return pd.DataFrame(rows, columns=["wording", "kind", "k", "prompts", "sha256"])


def _asked() -> list[tuple[str, Benchmark, Context]]:
    """What is asked, under the name of its kind."""
    run = oracle_run(FOUR.qrels)
    contexts = [
        *no_rag(FOUR),
        *gt_rag(FOUR),
        *retrieved_rag(FOUR),
        *zero_shot(FOUR),
        *non_clue(FOUR, draws=2),
        *top_k(FOUR, run, ks=[1, 3]),
        *one_in_k(FOUR, ks=[3], draws=2),
    ]
    kinds = [(context.setting, LIBRARY, context) for context in contexts]
    kinds += [("gt_rag reversed", LIBRARY, context) for context in reversed_contexts(gt_rag(FOUR))]
    kinds += [
        ("no_rag rotated by 1", rotate_options(LIBRARY, 1), context) for context in no_rag(FOUR)
    ]
    for setting in ("retrieved_text", "gt_text", "text_rag"):
        context = Context(query_id="0", setting=setting, k=2, doc_ids=("p1", "p2"))
        kinds.append((setting, LIBRARY, context))
    both = Context(query_id="0", setting="gt_image_and_text", k=3, doc_ids=("gt0-0", "p1", "p2"))
    return [*kinds, (both.setting, LIBRARY, both)]


if __name__ == "__main__":
    prompt_hashes().to_csv(FROZEN, index=False, lineterminator="\n")
