"""What an encoder is shown of a question or document: text, picture, or both."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import NamedTuple

from vrag_kit.errors import VragError
from vrag_kit.types import Evidence, LazyImage, Query

QUERY_PARTS = ("text", "image", "both")
DOCUMENT_PARTS = ("auto", "image", "text", "both")


class DocumentSide(NamedTuple):
    """What makes the vectors of documents; encoders that differ in questions alone have
    the same one, and share them.
    """

    name: str
    """Begins the name of their folder."""
    fingerprint: str
    """Hash of all that determines them."""


class Content(NamedTuple):
    """A text, a picture, or both."""

    text: str | None
    image: LazyImage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Which parts of questions and documents are encoded."""

    query: str = "text"
    """One of `QUERY_PARTS`."""
    document: str = "auto"
    """One of `DOCUMENT_PARTS`; "auto" is the picture, and the text of a document
    without one.
    """

    usual: str = "auto"
    """What this kind of encoder encodes of a document unless it is told otherwise."""
    usual_query: str = "text"
    """And of a question."""

    def of_documents(self) -> Shown:
        """The same without anything unusual about questions."""
        return replace(self, query=self.usual_query)

    def told(self) -> dict[str, str]:
        """What is not as usual: part of the fingerprint."""
        told = {}
        if self.query != self.usual_query:
            told["query"] = self.query
        if self.document != self.usual:
            told["document"] = self.document
        return told

    def named(self, name: str) -> str:
        """The encoder's name with what is not as usual: "clip-by-image",
        "clip-of-text".
        """
        told = self.told()
        by = f"-by-{told['query']}" if "query" in told else ""
        of = f"-of-{told['document']}" if "document" in told else ""
        return f"{name}{by}{of}"

    def of_query(self, query: Query, encoder: str) -> Content:
        """What `encoder` is shown of a question; raises `VragError` naming one without
        a picture where it needs one.
        """
        if self.query == "text":
            return Content(query.text, None)
        if query.image is None:
            raise VragError(
                f"query {query.query_id!r} has no image, which {encoder} encodes: its option"
                f" `query` is {self.query!r}. Ask by text, or load questions with images."
            )
        return Content(query.text if self.query == "both" else None, query.image)

    def of_document(self, document: Evidence, encoder: str) -> Content:
        """What `encoder` is shown of a document; raises `VragError` naming one that
        lacks it.
        """
        text = document.text if (document.text or "").strip() else None
        image = document.image
        missing = ""
        if self.document == "auto" and image is None and text is None:
            missing = "image and no text; {} encodes one or the other"
        elif self.document == "image" and image is None:
            missing = "image; {} encodes images only"
        elif self.document == "text" and text is None:
            missing = "text; {} encodes texts only"
        elif self.document == "both" and image is None:
            missing = "image; {} encodes images and texts together"
        elif self.document == "both" and text is None:
            missing = "text; {} encodes images and texts together"
        if missing:
            raise VragError(f"document {document.doc_id!r} has no {missing.format(encoder)}.")
        if self.document == "both":
            return Content(text, image)
        if self.document == "text" or image is None:
            return Content(text, None)
        return Content(None, image)

    def stamp(self, document: Evidence) -> str:
        """Changes whenever what is encoded of a document may have changed."""
        if document.image is None or self.document == "text":
            return _hash(document.text)
        picture = document.image.stamp
        return f"{picture} {_hash(document.text)}" if self.document == "both" else picture

    def content(self, document: Evidence, encoder: str) -> str:
        """Hash of what `encoder` encodes of a document, 32 hexadecimal digits: the same
        for the same picture and text, wherever they are; reads the picture.

        Raises `VragError` as `of_document` does.
        """
        return content_hash(self.of_document(document, encoder))


def content_hash(shown: Content, *more: str) -> str:
    """Hash of a text, a picture's stored bytes, and `more`: 32 hexadecimal digits."""
    picture = b"" if shown.image is None else shown.image.data()
    told = [shown.text, shown.image is not None, len(picture), *more]
    return hashlib.blake2b(json.dumps(told).encode() + picture, digest_size=16).hexdigest()


def _hash(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()
