"""Two conversations and a question alone, with what was searched and found, answered by
two models in two arms; written by hand, with markup wherever data has text.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from vrag_kit.analysis import apply_early_stop
from vrag_kit.benchmarks import ImageFile
from vrag_kit.papers.crag_mm.conversations import early_stopping_rule
from vrag_kit.types import Benchmark, Document, Query

MARKUP = "<script>window.ran = 1</script><img src=nowhere onerror='window.ran = 1'>"
LABELS = {"image_quality": "normal", "query_category": "simple-knowledge", "domain": "animal"}
ASKED = {
    "long": [
        ("What is this moth called?", "It is Talia ensis.", {}),
        ("Where does it live?", "It lives in Norland.", {"query_category": "multi-hop"}),
        ("How large is it?", "It is 43 mm large.", {}),
        ("Is that more than 40 mm?", "Yes.", {"query_category": "reasoning"}),
        ("In which months is it seen?", "In May and June.", {"query_category": "aggregation"}),
    ],
    "short": [
        ("What color is it?", "It is red.", {"image_quality": "blurred"}),
        (f"Which family {MARKUP} has it?", f"The {MARKUP} Talidae.", {"image_quality": "blurred"}),
    ],
}
SAID = {  # model, setting → the answers' scores, in the order of the questions
    ("small", "both"): [1, -1, -1, 1, 0, 1, 0, 1],
    ("small", "picture"): [1, 1, 0, 1, 1, 1, 1, np.nan],
    (MARKUP, "both"): [1, 1, 0, 1, 1, 1, 0, 1],
}


def picture(path: Path, seed: int, size: tuple[int, int]) -> ImageFile:
    """A picture of a few large squares."""
    squares = np.random.default_rng(seed).integers(0, 255, (4, 3, 3), dtype=np.uint8)
    Image.fromarray(squares).resize(size, Image.Resampling.NEAREST).save(path)
    return ImageFile(path)


def told_talks(folder: Path) -> Benchmark:
    """Seven turns, whose picture searches find kg-0 to kg-3, and word searches three pages."""
    queries, corpus = {}, {}
    for number, (talk, turns) in enumerate(ASKED.items()):
        asked = picture(folder / f"{talk}.png", number, (192, 256))
        for turn, (text, answer, labels) in enumerate(turns):
            place = {"conversation_id": talk, "turn": turn, "group": talk}
            about = {**place, "image": asked, "metadata": {**LABELS, **labels}}
            name = f"{talk}-{turn}"
            queries[name] = Query(query_id=name, text=text, answers=(answer,), **about)
    about = {"image": ImageFile(folder / "not_there.png"), "answers": ("Ada.",), "group": "alone"}
    queries["alone"] = Query(query_id="alone", text="Who named it?", **about)
    for number in range(4):
        entity = "Talia ensis" if number < 2 else f"Talia {MARKUP} osa"
        attributes = {"look": "red, banded with white", "size": "43 mm", MARKUP: MARKUP}
        entities = [{"entity_name": entity, "entity_attributes": attributes}]
        image = picture(folder / f"kg-{number}.png", 10 + number, (128, 96))
        metadata = {"source": "image_search", "entities": entities}
        corpus[f"kg-{number}"] = Document(doc_id=f"kg-{number}", image=image, metadata=metadata)
    for number in range(3):
        url, text = f"https://worn.example/{number}", f"A moth of {MARKUP} Norland. "
        metadata = {"source": "web_search", "page_name": f"Moths {number}", "page_url": url}
        corpus[url] = Document(doc_id=url, text=text * (1 + 20 * number), metadata=metadata)
    qrels = {"short-0": {"kg-2": 1, "kg-3": 1, "kg-0": 0}}
    return Benchmark(name="told", fingerprint="t", queries=queries, corpus=corpus, qrels=qrels)


def told_turns(benchmark: Benchmark) -> pd.DataFrame:
    """The turns as `apply_early_stop` gives them: two in a row that are not right end a talk."""
    rows = []
    for (model, setting), scores in SAID.items():
        kept = ("kg-0", "https://worn.example/1") if setting == "both" else ("kg-0", "kg-2")
        for name, score in zip(benchmark.queries, scores, strict=True):
            known = score == score
            rows.append(
                {
                    "model": model,
                    "setting": setting,
                    "query_id": name,
                    "group": benchmark.queries[name].group,
                    "doc_ids": kept,
                    "search_query": f"Talia ensis: {benchmark.queries[name].text}",
                    "answer": f"A red moth {MARKUP}: Norland." if known else None,
                    "status": "ok" if known else "timeout",
                    "score": score,
                    "verdict": f"Result: {MARKUP}" if known else "timeout: no whole answer",
                    "marks": "abstention" if score == 0 else "",
                }
            )
    table = pd.DataFrame(rows).assign(k=4, draw=0, sample=0, score_min=-1.0, score_max=1.0)
    return apply_early_stop(table, benchmark, early_stopping_rule)
