"""A small index of pictures, one of pages, and every service that searches them.

`python tests/small_index.py INDEX.json [FAULT]` is a program that searches them too, as
`retrieval.program` wants it, from vectors in a file: it needs no model.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

if TYPE_CHECKING:
    from vrag_kit.retrieval import SearchService
    from vrag_kit.types import Evidence, Query

FULL = " ".join(f"word{number}" for number in range(1100))
PAGES = [
    ("https://a.org/heron", "Heron", "A grey bird of the fen.", "It eats fish. " + FULL),
    ("https://a.org/the owl", "Owl", "A brown bird of the night.", ""),
    ("https://b.org/http", "HTTP", "A http link is no bird.", None),
    ("https://b.org/moth", "Moth", "A red moth, banded with white.", "Larvae eat nettles."),
]
TEXTS = ["grey bird", "brown bird at night", "http link: is it a bird?", "nettles"]


@dataclass(frozen=True)
class Small:
    """What is searched, by what, and where files may go."""

    entries: dict[str, Evidence]
    pages: dict[str, Evidence]
    clip: str
    bert: dict[str, Any]
    root: Path

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def held(self) -> str:
        """Its entries, as names of files have it."""
        return "-".join(self.entries)

    def without_first(self) -> Small:
        """The same, one entry and one page less."""
        entries = dict(list(self.entries.items())[1:])
        return replace(self, entries=entries, pages=dict(list(self.pages.items())[1:]))

    def queries(self) -> list[Query]:
        """Each has a text and a picture."""
        from vrag_kit.types import Query

        pictures = [entry.image for entry in self.entries.values()]
        return [
            Query(query_id=f"q{number}", text=text, image=picture)
            for number, (text, picture) in enumerate(zip(TEXTS, pictures, strict=False))
        ]


def build(documents: list[Evidence], root: Path) -> Small:
    """The small index; `documents` lend their pictures."""
    import tiny_retrievers as tiny

    from vrag_kit.types import Evidence

    tiny.clip(root / "clip")
    tiny.bert(root / "bert")
    entries = {
        f"kg-{number}": Evidence(
            doc_id=f"kg-{number}",
            image=document.image,
            metadata={"url": f"https://pictures.org/{number}.jpg"},
        )
        for number, document in enumerate(documents)
    }
    pages = {}
    for url, name, snippet, full in PAGES:
        told = {"page_name": name, "page_url": url, "page_result": full}
        doc_id = url.replace(" ", "%20")
        pages[doc_id] = Evidence(doc_id=doc_id, text=snippet, metadata=told)
    bert = {"model": str(root / "bert"), "pooling": "mean", "normalize": True}
    return Small(entries, pages, str(root / "clip"), bert, root)


def rows(small: Small, by: str) -> list[tuple[str, Any, dict[str, Any]]]:
    """(id, vector, metadata) of every picture or chunk, as Chroma gives them back from
    an index in the official layout.
    """
    import tiny_retrievers as tiny

    from vrag_kit.retrieval import load_encoder
    from vrag_kit.retrieval.page_chunks import page_chunks, page_of

    if by == "image":
        vectors = tiny.embed(load_encoder(small.clip), list(small.entries.values()))
        told = [
            {"image_url": entry.metadata["url"], "entities": '["Heron"]', "info": "{}"}
            for entry in small.entries.values()
        ]
        ids = [doc_id.removeprefix("kg-") for doc_id in small.entries]
        return list(zip(ids, vectors, told, strict=True))
    chunks = list(page_chunks(small.pages.values()))
    vectors = tiny.embed(load_encoder(small.bert), chunks)
    found = []
    for chunk, vector in zip(chunks, vectors, strict=True):
        page = small.pages[page_of(chunk.doc_id)]
        url = page.metadata["page_url"]
        name = chunk.doc_id.replace(page.doc_id, url)
        told = {"page_url": url, "page_name": page.metadata["page_name"], "page_snippet": page.text}
        found.append((name, vector, told))
    return found


def converted(small: Small, by: str) -> Path:
    """A converted index of the same pictures or pages, written once."""
    from vrag_kit.retrieval.convert_chroma import Row, write_index

    folder = small.root / f"converted-{by}-{small.held}"
    if not folder.exists():
        encoder = small.clip if by == "image" else str(small.bert["model"])
        write_index((Row(*row) for row in rows(small, by)), folder, by, encoder)
    return folder


def converted_service(small: Small, by: str) -> SearchService:
    """Exact search in the converted index."""
    from vrag_kit.retrieval import converted_service

    documents, entry = (small.entries, small.clip) if by == "image" else (small.pages, small.bert)
    return converted_service(converted(small, by), documents, entry, small.cache)


def program_service(small: Small, by: str, fault: str = "", **waits: float) -> SearchService:
    """The search of this file's program."""
    from vrag_kit.retrieval import Program, ProgramService

    path = small.root / f"program-{by}-{small.held}.json"
    if not path.exists():
        path.write_text(json.dumps(_index(small, by)), encoding="utf-8")
    command = (sys.executable, __file__, str(path), *([fault] if fault else []))
    documents = small.entries if by == "image" else small.pages
    return ProgramService("program", Program(command=command, **waits), documents, reads=by)


def _index(small: Small, by: str) -> dict[str, Any]:
    """Vectors of all pieces, and of the queries that will be asked."""
    from vrag_kit.retrieval import load_encoder

    entry = {"model": small.clip, "query": "image"} if by == "image" else small.bert
    queries = small.queries()
    vectors = load_encoder(entry).encode_queries(queries)
    if by == "image":
        asked = [_pixels(query.image.open()) for query in queries]  # type: ignore[union-attr]
    else:
        asked = [query.text for query in queries]
    pieces = []
    for name, vector, told in rows(small, by):
        url = told.get("page_url") or told["image_url"]
        doc_id = f"kg-{name}" if by == "image" else url.replace(" ", "%20")
        pieces.append([name, doc_id, url, [float(number) for number in vector]])
    listed = [[float(number) for number in vector] for vector in vectors]
    return {"pieces": pieces, "asked": dict(zip(asked, listed, strict=True))}


def _pixels(picture: Image.Image) -> str:
    return hashlib.sha256(picture.convert("RGB").tobytes()).hexdigest()


def _answer(index: dict[str, Any], asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The k best pieces, made unique by document."""
    what = asked["text"] if "text" in asked else _pixels(Image.open(asked["image"]))
    vector = index["asked"][what]
    scored = []
    for name, doc_id, url, other in index["pieces"]:
        score = sum(a * b for a, b in zip(vector, other, strict=True))
        scored.append((score, name, {"doc_id": doc_id, "score": score, "url": url}))
    best: dict[str, dict[str, Any]] = {}
    for _, _, hit in sorted(scored, key=lambda each: each[:2], reverse=True)[: asked["k"]]:
        best.setdefault(hit["doc_id"], hit)
    return list(best.values())


def main(path: str, fault: str = "") -> None:
    """Answer questions, or misbehave as `fault` says at the second one."""
    index = json.loads(Path(path).read_text(encoding="utf-8"))
    if fault == "not ready":
        sys.exit("no model here")
    print(json.dumps({"ready": True}), flush=True)
    for number, line in enumerate(sys.stdin):
        asked = json.loads(line)
        reply: dict[str, Any] = {"id": asked["id"]}
        now = fault if number else ""
        if now == "dies":
            print("out of memory", file=sys.stderr)
            sys.exit(3)
        if now == "is slow":
            time.sleep(60)
        if now == "prints":
            print("Loading the index …")
        if now == "cannot":
            print(json.dumps({**reply, "error": "KeyError: 'Heron'"}), flush=True)
            continue
        hits = _answer(index, asked)
        if now == "another split":
            hits = [{**hit, "url": "https://elsewhere.org"} for hit in hits]
        if now == "unknown":
            hits = [{**hit, "doc_id": "kg-99"} for hit in hits]
        if now == "no score":
            hits = [{"doc_id": hit["doc_id"]} for hit in hits]
        if now == "not a number":
            hits = [{**hit, "score": float("nan")} for hit in hits]
        if now == "out of turn":
            reply["id"] += 1
        print(json.dumps({**reply, "hits": hits}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
