"""CRAG-MM's own search package as a program for `retrieval.program`.

It runs where `cragmm-search-pipeline` and transformers 4 are installed (the kit need not
be), and searches the authors' indexes as they do, approximately:

    python vrag_kit/papers/crag_mm/official_search.py --image-model MODEL
        --image-index NAME [--image-tag TAG] [--text-model MODEL --web-index NAME
        [--web-tag TAG]]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import defaultdict
from typing import Any
from urllib.parse import quote


def main() -> None:
    """Answer the questions on standard input until it ends."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name in ("--image-model", "--image-index"):
        parser.add_argument(name, required=True)
    for name in ("--image-tag", "--text-model", "--web-index", "--web-tag"):
        parser.add_argument(name)
    given = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print as they like, to standard error from here on
    pipeline = _load(given)
    _say(answers, {"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            reply = {"id": asked["id"], "hits": _hits(pipeline, asked)}
        except Exception as error:  # whatever it is, who asked is told
            reply = {"id": asked["id"], "error": f"{type(error).__name__}: {error}"}
        _say(answers, reply)


def _load(given: argparse.Namespace) -> Any:  # Any: a class of the package
    from cragmm_search.search import UnifiedSearchPipeline

    pipeline = UnifiedSearchPipeline(
        image_model_name=given.image_model,
        image_hf_dataset_id=given.image_index,
        image_hf_dataset_tag=given.image_tag,
        text_model_name=given.text_model,
        web_hf_dataset_id=given.web_index,
        web_hf_dataset_tag=given.web_tag,
    )
    # an entity without attributes, which are not asked for here, would be a KeyError
    pipeline.crag_image_kg.kg = defaultdict(dict, pipeline.crag_image_kg.kg)
    return pipeline


def _hits(pipeline: Any, asked: dict[str, Any]) -> list[dict[str, Any]]:  # Any: JSON
    if "image" in asked:
        from PIL import Image

        with Image.open(asked["image"]) as picture:
            found = pipeline(picture.convert("RGB"), k=asked["k"])
        return [
            {"doc_id": f"kg-{hit['index']}", "score": hit["score"], "url": hit["url"]}
            for hit in found
        ]
    # text that begins with "http" or names a file would be taken for a picture; white
    # space before it changes nothing of what the encoder reads
    found = pipeline(f" {asked['text']}", k=asked["k"])
    return [
        {"doc_id": _page(hit["page_url"]), "score": hit["score"], "url": hit["page_url"]}
        for hit in found
    ]


def _page(url: str) -> str:
    """An address as an id, as `read_web_index` writes it."""
    return re.sub(r"[\s\x00-\x1f\x7f]", lambda found: quote(found[0], safe=""), url.strip())


def _say(answers: Any, reply: dict[str, Any]) -> None:  # Any: a file; JSON
    answers.write(json.dumps(reply) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, whose names are not those of libraries
    main()
