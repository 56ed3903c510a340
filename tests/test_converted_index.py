"""An official index is converted once and searched exactly; what does not fit is refused.

Where an interpreter has chromadb, VRAG_CHROMA_PYTHON names it, and a real database is
built and converted; the kit's own environment has none.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_index
from small_index import Small

from vrag_kit.benchmarks.crag_mm_index import read_image_index, read_web_index
from vrag_kit.errors import VragError
from vrag_kit.retrieval import chroma, chroma_service, image_service
from vrag_kit.retrieval.chroma import ChromaRow, write_index
from vrag_kit.types import Query

CHROMA = os.environ.get("VRAG_CHROMA_PYTHON", "")
INFO = {"Talia ensis": {"habitat": "[[Fen|fens]] of '''Norland'''", "size": "{{cvt|43|mm}}"}}
ROWS = [
    ChromaRow("10", [3.0, 4.0], {"image_url": "u/10", "entities": '["Talia ensis"]', "info": "{}"}),
    ChromaRow(
        "2",
        [0.0, 2.0],
        {"image_url": "u/2", "entities": '["Talia ensis", "Moth"]', "info": json.dumps(INFO)},
    ),
    ChromaRow("3", [1.0, 0.0], {"entities": "Heron", "info": "A grey bird of the [[fen]]."}),
    ChromaRow("4", [1.0, 1.0], {"image_url": "u/4", "entities": '"Owl"', "info": '{"Elk": {}}'}),
]


def test_entities_and_attributes_are_read_as_json_or_text_and_markup_stays(tmp_path: Path) -> None:
    said = write_index(ROWS, tmp_path / "kg", "image", "org/clip")
    assert said.endswith("kg: 4 vectors of 4 documents, by org/clip")
    entries = read_image_index(tmp_path / "kg")
    told = {name: entry.metadata["entities"] for name, entry in entries.items()}
    assert list(told) == ["kg-10", "kg-2", "kg-3", "kg-4"]
    assert told["kg-10"] == [{"entity_name": "Talia ensis", "entity_attributes": ""}]
    assert told["kg-2"] == [
        {"entity_name": "Talia ensis", "entity_attributes": INFO["Talia ensis"]},
        {"entity_name": "Moth", "entity_attributes": ""},
    ]
    assert told["kg-3"] == [
        {
            "entity_name": "Heron",
            "entity_attributes": {"info": "A grey bird of the [[fen]]."},
        }
    ]
    assert told["kg-4"] == [{"entity_name": "Owl", "entity_attributes": ""}]
    assert entries["kg-2"].metadata["url"] == "u/2"
    vectors = np.load(tmp_path / "kg" / "vectors" / "0000.npy")
    assert vectors == pytest.approx(np.array([[0.6, 0.8], [0, 1], [1, 0], [0.5**0.5] * 2]))


def test_chunks_become_pages_and_white_space_in_ids_is_percent_encoded(tmp_path: Path) -> None:
    url = "https://a.org/the owl_chunk_9"
    told = {"page_url": url, "page_name": "Owl", "page_snippet": "Brown."}
    rows = [ChromaRow(f"{url}_chunk_{number}", [1.0, number], told) for number in (0, 1, 12)]
    plain = {"page_url": "https://a.org/elk", "page_name": "Elk", "page_snippet": ""}
    rows.append(ChromaRow("https://a.org/elk", [0.0, 1.0], plain))
    write_index(rows, tmp_path / "web", "text", "org/bge")
    pages = read_web_index(tmp_path / "web")
    assert list(pages) == ["https://a.org/the%20owl_chunk_9", "https://a.org/elk"]
    assert pages["https://a.org/the%20owl_chunk_9"].metadata["page_url"] == url
    pieces = (tmp_path / "web" / "vectors" / "pieces.txt").read_text().splitlines()
    chunks = [f"https://a.org/the%20owl_chunk_9_chunk_{number}" for number in (0, 1, 12)]
    assert pieces == [*chunks, "https://a.org/elk_chunk_0"]


def test_shards_of_any_size_hold_the_same_index(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [ChromaRow(*row) for row in small_index.rows(small, "text")]
    monkeypatch.setattr(chroma, "SHARD", 3)
    write_index(rows, tmp_path / "small", "text", str(small.bert["model"]))
    assert len(list((tmp_path / "small" / "vectors").glob("*.npy"))) == 3
    run = chroma_service(tmp_path / "small", small.pages, small.bert, small.cache)
    whole = small_index.converted_service(small, "text")
    assert run.search(small.queries(), 5).equals(whole.search(small.queries(), 5))


@pytest.mark.parametrize(
    ("row", "by", "message"),
    [
        (ChromaRow("1", [0.0, 0.0], {}), "image", "row '1': its vector has length 0.0"),
        (ChromaRow("1", [float("nan"), 0.0], {}), "image", "row '1': its vector has length nan"),
        (ChromaRow("1", [1.0], {}), "image", "row '1': 1 components; 2 before"),
        (ChromaRow("one", [1.0, 0.0], {}), "image", "row 'one': expected the number of a picture"),
        (ChromaRow("u_chunk_0", [1.0, 0.0], {}), "text", "row 'u_chunk_0': no page_url"),
    ],
)
def test_a_row_that_cannot_be_used_ends_the_conversion_and_leaves_no_index(
    row: ChromaRow, by: str, message: str, tmp_path: Path
) -> None:
    first = ChromaRow("7", [1.0, 0.0], {"page_url": "u"})
    with pytest.raises(SystemExit) as ended:
        write_index([first, row], tmp_path / "index", by, "org/model")
    assert str(ended.value).startswith(message)
    assert not (tmp_path / "index").exists()
    write_index([first], tmp_path / "index", by, "org/model")
    with pytest.raises(SystemExit, match="is there already"):
        write_index([first], tmp_path / "index", by, "org/model")


@pytest.fixture
def copied(small: Small, tmp_path: Path) -> Path:
    """A converted index of the small pictures, to damage."""
    return Path(shutil.copytree(small_index.converted(small, "image"), tmp_path / "index"))


def test_an_index_of_another_encoder_is_refused_by_name_and_by_width(
    copied: Path, small: Small
) -> None:
    shutil.copytree(small.clip, copied / "other")
    with pytest.raises(VragError, match=r"clip made these vectors, but the retriever is .*other"):
        chroma_service(copied, small.entries, str(copied / "other"), small.cache)
    manifest = copied / "vectors" / "manifest.json"
    told = json.loads(manifest.read_text())
    narrow = np.load(copied / "vectors" / "0000.npy")[:, :12]
    np.save(copied / "vectors" / "0000.npy", np.ascontiguousarray(narrow))
    content = (copied / "vectors" / "0000.npy").read_bytes()
    told["shards"][0]["sha256"] = hashlib.sha256(content).hexdigest()
    manifest.write_text(json.dumps({**told, "dim": 12}))
    service = chroma_service(copied, small.entries, small.clip, small.cache)
    with pytest.raises(VragError, match=r"clip.*of questions have 24 components, .*12; expected"):
        service.search(small.queries(), 1)


def test_vectors_of_another_splits_documents_are_refused(copied: Path, small: Small) -> None:
    with pytest.raises(VragError, match="1 documents, such as 'kg-0', are in the index or were"):
        chroma_service(copied, small.without_first().entries, small.clip, small.cache)
    other = small_index.converted(small.without_first(), "image")
    shutil.copy(other / "entries.jsonl", copied)
    with pytest.raises(VragError, match=r"entries\.jsonl: not the file that was written with"):
        chroma_service(copied, small.entries, small.clip, small.cache)


def test_a_folder_without_vectors_and_a_damaged_one_are_named(copied: Path, small: Small) -> None:
    def search() -> None:
        service = chroma_service(copied, small.entries, small.clip, small.cache)
        service.search(small.queries(), 1)

    search()
    shard = copied / "vectors" / "0000.npy"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-64])
    with pytest.raises(VragError, match=r"0000\.npy: cannot be used .* Convert the index again"):
        search()
    np.save(shard, np.ones((3, 24), np.float32))
    with pytest.raises(VragError, match=r"shape \(3, 24\), expected \(4, 24\)"):
        search()
    shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(VragError, match=r"0000\.npy: cannot be used \(its SHA-256"):
        search()
    shard.write_bytes(whole)
    ids = copied / "vectors" / "pieces.txt"
    first, second, *others = named = ids.read_text().splitlines()
    ids.write_text("\n".join([second, first, *others, ""]))
    with pytest.raises(VragError, match=r"pieces\.txt: cannot be used \(its SHA-256"):
        search()
    ids.write_text("\n".join([*named, ""]))
    search()
    shard.unlink()
    with pytest.raises(VragError, match=r"0000\.npy: cannot be used"):
        search()
    manifest = copied / "vectors" / "manifest.json"
    told = json.loads(manifest.read_text())
    outside = {"file": "../../entries.jsonl", "rows": 4}
    for change in ({"shards": [outside]}, {"documents": {**told["documents"], **outside}}):
        manifest.write_text(json.dumps({**told, **change}))
        with pytest.raises(VragError, match=r"manifest\.json: '../../entries.jsonl'.* outside"):
            search()
    manifest.write_text("{}")
    with pytest.raises(VragError, match=r"manifest\.json: cannot be used"):
        search()
    shutil.rmtree(copied / "vectors")
    with pytest.raises(VragError, match=r"holds no converted index.*chroma\.py"):
        search()


def test_pictures_that_are_asked_about_are_kept_with_the_encoder_not_in_the_index(
    copied: Path, small: Small, tmp_path: Path
) -> None:
    before = sorted(copied.rglob("*"))
    service = chroma_service(copied, small.entries, small.clip, tmp_path / "cache")
    service.search(small.queries(), 2)
    assert sorted(copied.rglob("*")) == before
    assert list((tmp_path / "cache").glob("clip-by-image-*/queries-*/*.npy"))


BUILD = """
import json, sys, chromadb
for name, rows in json.load(open(sys.argv[1])).items():
    client = chromadb.PersistentClient(path=sys.argv[2] + "/" + name)
    made = client.create_collection(name, metadata={"hnsw:space": "cosine"})
    ids, vectors, told = zip(*rows)
    made.add(ids=list(ids), embeddings=list(vectors), metadatas=list(told))
"""


@pytest.mark.skipif(not CHROMA, reason="VRAG_CHROMA_PYTHON names no interpreter with chromadb")
def test_a_chroma_database_in_the_official_layout_is_converted_and_finds_the_same(
    small: Small, tmp_path: Path
) -> None:
    """The rows are put in backwards and come out by id; vectors are not of unit length."""
    collections = {}
    for name, by in chroma.COLLECTIONS.items():
        rows = small_index.rows(small, by)[::-1]
        collections[name] = [(each, (7 * vector).tolist(), told) for each, vector, told in rows]
    (tmp_path / "rows.json").write_text(json.dumps(collections))
    build = [CHROMA, "-c", BUILD, str(tmp_path / "rows.json"), str(tmp_path)]
    subprocess.run(build, check=True, cwd=tmp_path)
    for name, by in chroma.COLLECTIONS.items():
        encoder = small.clip if by == "image" else str(small.bert["model"])
        arguments = [str(tmp_path / name), str(tmp_path / by), "--encoder", encoder]
        command = [CHROMA, chroma.__file__, *arguments]
        subprocess.run(command, check=True, cwd=tmp_path)
        expected = small_index.converted_service(small, by).search(small.queries(), 7)
        if by == "image":
            documents = read_image_index(tmp_path / by)
            entry: object = small.clip
        else:
            documents, entry = read_web_index(tmp_path / by), small.bert
        service = chroma_service(tmp_path / by, documents, entry, small.cache)
        run = service.search(small.queries(), 7)
        assert run.drop(columns="score").equals(expected.drop(columns="score"))
        assert list(run["score"]) == pytest.approx(list(expected["score"]), abs=1e-6)


def test_the_command_names_a_folder_without_a_database(tmp_path: Path) -> None:
    arguments = [str(tmp_path), str(tmp_path / "out"), "--encoder", "org/clip"]
    command = [sys.executable, chroma.__file__, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "holds no chroma.sqlite3; give the folder of a database" in ended.stderr


def test_our_own_index_and_the_converted_one_score_alike(small: Small) -> None:
    query = Query(query_id="q", text="", image=small.queries()[2].image)
    own = image_service(small.entries, small.clip, small.cache).search([query], 4)
    assert own["score"][0] == pytest.approx(1, abs=1e-6)
    fewer = replace(small, entries=dict(list(small.entries.items())[:3]))
    run = small_index.converted_service(fewer, "image").search([query], 4)
    expected = own[own["doc_id"] != "kg-3"]
    assert list(run["doc_id"]) == list(expected["doc_id"])
