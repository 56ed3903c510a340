"""A published index is converted once and searched exactly; what does not fit is refused.

A real database is built and converted where chromadb is installed.
"""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
import small_index
from retrieval_data import refused
from small_index import service_of

from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks, read_image_index, read_web_index
from vrag_kit.papers.crag_mm import chroma
from vrag_kit.papers.crag_mm.chroma import ChromaRow, convert_index
from vrag_kit.retrieval import image_service
from vrag_kit.workspace import Workspace

VECTOR = {"image": [3.0, 4.0] * 12, "text": [3.0, 4.0] * 16}


def test_entities_and_attributes_are_read_as_json_or_text_and_markup_stays(small, tmp_path):
    info = {"Talia ensis": {"habitat": "[[Fen|fens]] of '''Norland'''", "size": "{{cvt|43|mm}}"}}
    both = {"entities": '["Talia ensis", "Moth"]', "info": json.dumps(info)}
    heron = {"entities": "Heron", "info": "A grey bird of the [[fen]]."}
    metadata = {"2": {"image_url": "u/2", **both}, "3": heron}
    rows = [ChromaRow(name, VECTOR["image"], told) for name, told in metadata.items()]
    summary = convert_index(rows, tmp_path / "kg", "image", small.clip)
    assert "kg: 2 vectors of 2 documents by clip" in summary
    entries = read_image_index(tmp_path / "kg")
    found = {name: each.metadata["entities"] for name, each in entries.items()}
    assert found == {
        "kg-2": [entity("Talia ensis", info["Talia ensis"]), entity("Moth", "")],
        "kg-3": [entity("Heron", {"info": "A grey bird of the [[fen]]."})],
    }
    assert entries["kg-2"].metadata["url"] == "u/2"


def entity(name: str, attributes: object) -> dict[str, object]:
    return {"entity_name": name, "entity_attributes": attributes}


def test_chunks_become_pages_and_one_without_a_vector_is_embedded_here(small, tmp_path, capsys):
    """White space in ids is percent-encoded."""
    url = "https://a.org/the owl_chunk_9"
    told = {"page_url": url, "page_name": "Owl", "page_snippet": "Brown."}
    rows = [ChromaRow(f"{url}_chunk_{number}", VECTOR["text"], told) for number in (1, 12)]
    plain = {"page_url": "https://a.org/elk", "page_name": "Elk", "page_snippet": ""}
    rows.append(ChromaRow("https://a.org/elk", VECTOR["text"], plain))
    summary = convert_index(rows, tmp_path / "web", "text", small.bert)
    assert "3 vectors of 2 documents" in summary
    pages = read_web_index(tmp_path / "web")
    assert list(pages) == ["https://a.org/the%20owl_chunk_9", "https://a.org/elk"]
    owl = pages["https://a.org/the%20owl_chunk_9"]
    assert owl.metadata["page_url"] == url
    assert page_chunks(owl) == ["Owl Brown.", None, *[""] * 10, None]
    capsys.readouterr()
    service_of(small, "text", tmp_path / "web").search(small.queries(), 4)
    assert "3 from disk, 1 new" in capsys.readouterr().out


def test_a_converted_index_embeds_nothing_and_finds_the_published_vectors(
    small, tmp_path, monkeypatch
):
    """Shards of any size hold the same index, vectors are scaled to unit length."""
    by = "text"
    monkeypatch.setattr(chroma, "SHARD", 3)
    rows = [ChromaRow(name, 7 * vector, told) for name, vector, told in small_index.rows(small, by)]
    convert_index(rows, tmp_path / by, by, small.bert)
    expected = small_index.converted_service(small, by).search(small.queries(), 7)
    run = service_of(small, by, tmp_path / by).search(small.queries(), 7)
    assert run.drop(columns="score").equals(expected.drop(columns="score"))
    assert list(run["score"]) == pytest.approx(list(expected["score"]), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "told", "vector", "by", "tokens"),
    [
        ("1", {}, [0.0] * 24, "image", "'kg-1' has length nan"),
        ("one", {}, VECTOR["image"], "image", "row 'one' | 'index'"),
        ("u_chunk_1", {}, VECTOR["text"], "text", "row 'u_chunk_1' | 'page_url' | None"),
        ("u", {"page_url": "u"}, VECTOR["text"], "text", "row 'u' | 'u_chunk_0' | once"),
    ],
)
def test_a_row_that_cannot_be_used_ends_the_conversion_and_leaves_no_index(
    name, told, vector, by, tokens, small, tmp_path
):
    entry = small.clip if by == "image" else small.bert
    row = ChromaRow(name, vector, told)
    first = ChromaRow("u_chunk_0" if by == "text" else "7", VECTOR[by], {"page_url": "u"})
    convert = partial(convert_index, folder=tmp_path / "index", modality=by, entry=entry)
    refused(partial(convert, [first, row]), *tokens.split(" | "))
    assert not (tmp_path / "index").exists()
    convert([first])
    refused(partial(convert, [first]), "exists already")


@pytest.fixture
def copied(small, tmp_path):
    """A converted index of the small images, to damage."""
    return Path(shutil.copytree(small_index.converted(small, "image"), tmp_path / "index"))


def test_documents_without_their_vectors_are_refused(copied, small):
    other = small_index.converted(small.without_first(), "image")
    shutil.copytree(other / "embeddings", copied / "embeddings", dirs_exist_ok=True)
    shutil.copy(other / "entries.jsonl", copied)
    service_of(small, "image", copied).search(small.queries(), 1)  # a part of the index
    lines = (copied / "entries.jsonl").read_text().replace('"index": 1', '"index": 9')
    (copied / "entries.jsonl").write_text(lines)
    service = service_of(small, "image", copied)
    refused(lambda: service.search(small.queries(), 1), "'kg-9' has no image")
    shutil.copytree(small.clip, copied / "other")
    (copied / "other" / "extra.json").write_text("{}")
    another = image_service(
        read_image_index(copied), str(copied / "other"), Workspace(cache_dir=copied / "embeddings")
    )
    refused(lambda: another.search(small.queries(), 1), "has no image", "other")


def test_the_command_names_a_folder_without_a_database(tmp_path, monkeypatch, capsys):
    given = ["chroma", str(tmp_path), str(tmp_path / "out"), "--encoder", "org/clip"]
    monkeypatch.setattr(sys, "argv", given)
    with pytest.raises(SystemExit, match="1"):
        chroma.main()
    assert "holds no chroma.sqlite3; expected the folder of a database" in capsys.readouterr().err
