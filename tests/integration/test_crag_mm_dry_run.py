"""A dry run on CRAG-MM's real layout: what is not here is listed once, and what the
notebooks would ask is counted all the same.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from crag_rows import session, turn, write_rows
from own_project import check_parameters

from vrag_kit.benchmarks.datasets.crag_mm_index import ENTRIES, PAGES
from vrag_kit.files import write_file

ASKED = 4
CLIP, BGE = "openai/clip-vit-large-patch14-336", "BAAI/bge-large-en-v1.5"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Rows and converted indexes, as fetching and converting leave them."""
    folder = tmp_path / "crag-mm"
    colors = ("red", "green", "blue", "black")
    for name, kind in (("s", "single-turn"), ("t", "multi-turn")):
        rows = [
            session(f"{name}{i}", turn(f"{name}{i}", f"What is {name}{i}?"), color=colors[i])
            for i in range(ASKED)
        ]
        write_rows(folder / kind, rows, split="public_test")
    entries, pages = [], []
    for number in range(4):
        url = f"https://x.org/{number}"
        thing = {"entity_name": f"Thing {number}", "entity_attributes": None}
        entries.append({"index": number, "image": None, "image_url": url, "entities": [thing]})
        pages.append({"page_url": url, "page_name": f"Page {number}", "page_snippet": "A thing."})
    for index, file, rows in (("image", ENTRIES, entries), ("web", PAGES, pages)):
        lines = (f"{json.dumps(row)}\n" for row in rows)
        write_file(folder / f"{index}-index-public-test" / file, lines)
    return folder


@pytest.mark.slow
def test_what_is_not_here_is_listed_and_all_calls_are_counted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    values: dict[str, Any] = {
        "notebooks": ["crag_mm/52_crag_mm_answers"],
        "crag_mm_single": str(folder / "single-turn"),
        "crag_mm_multi": str(folder / "multi-turn"),
        "crag_mm": {"split": "public_test", "indexes": str(folder), "egocentric_size": []},
        "image_search": {"image_service": CLIP, "image_k": 10, "similarity_threshold": 0.85},
        "web_search": {
            **{"web_k": 5, "rewrite": "retrieved"},
            "web_service": {"model": BGE, "pooling": "mean"},
            "rewriter": "nobody/rewriter",
        },
        "judge": "nobody/judge",
        "conversation": {
            **{"history": "generated", "early_stopping": False, "max_answer_tokens": 75},
            "answer_tokenizer": "nobody/tokens",
        },
        "answers_dir": str(tmp_path / "answers"),
        "cache_dir": str(tmp_path / "cache"),
    }
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    found, missing = check_parameters(file)
    for words in (CLIP, BGE, "'nobody/rewriter'", "'nobody/judge'"):
        assert sum(words in line for line in missing) == 1, missing
    (tokens,) = [line for line in missing if "answer_tokenizer 'nobody/tokens'" in line]
    assert "hf download" in tokens
    assert len(missing) == 5
    told = "\n".join(found)
    calls = re.findall(r"forecast: (\d+) calls", told)
    # three arms of questions and two of conversations, with two images each
    assert calls == [str(2 * (3 + 2) * ASKED)]
    for name in (CLIP, BGE):
        assert re.search(rf"is what .*{name.replace('/', '-')}.* will find", told)
