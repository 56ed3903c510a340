"""A million documents of Visual-RAG's layout fit into a laptop's memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SPECIES, IMAGES = 4_000, 250
MOST = 250
"""Bytes of memory a document, held once a benchmark is loaded; DESIGN allows 300."""
LOAD = """
import sys
import psutil
from vrag_kit.benchmarks import load_visual_rag
before = psutil.Process().memory_info().rss
benchmark = load_visual_rag(sys.argv[1], sys.argv[2])
assert 'another' not in benchmark.corpus  # a lookup makes the table of names
print((psutil.Process().memory_info().rss - before) / len(benchmark.corpus), len(benchmark.corpus))
"""


@pytest.mark.slow
def test_a_million_documents_take_few_bytes_each(tmp_path):
    names = [f"{number:032x}.jpg" for number in range(IMAGES)]
    (tmp_path / "one").mkdir()
    (tmp_path / "images").mkdir()
    for name in names:
        (tmp_path / "one" / name).touch()
    with (tmp_path / "annotations.jsonl").open("w", encoding="utf-8") as file:
        for number in range(SPECIES):
            folder = f"{number:05d}_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"
            (tmp_path / "images" / folder).symlink_to(tmp_path / "one")
            labels = {f"{folder}/{name}": int(name == names[0]) for name in names}
            row = {"question": f"{number}?", "answer": ["black"], "sn": "Branta leucopsis"}
            file.write(json.dumps({**row, "images": labels}) + "\n")
    call = [sys.executable, "-c", LOAD, tmp_path / "annotations.jsonl", tmp_path / "images"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    each, documents = map(float, done.stdout.split()[-2:])
    assert documents == SPECIES * IMAGES
    assert 0 < each < MOST
