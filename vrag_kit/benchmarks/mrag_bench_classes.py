"""Pools of images of the same classes as a question's ground truth, for more than five
examples; classes come from file names or from a label file.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, DocId, QueryId

_IN_NAMES = (  # groups of the corpus whose file names tell the class
    re.compile(r"(?P<label>.+?)_gt_.*"),  # from the web: "Temporal_Cats_17_gt_3.jpg"
    re.compile(r".+_by_class_.+?_(?:train|test)_(?P<label>.+)_\d+\.\w+"),  # StanfordCars
    re.compile(r"(?:geoDE_geode|regions)_images_(?P<label>[^_]+)_.*"),  # GeoDE: the region
)


def read_class_labels(path: Path | str) -> dict[str, str]:
    """Read the classes of corpus files from a CSV file with the columns file and label.

    ImageNet's and Flowers' images need it. Raises `VragError` for an unreadable file or other
    columns.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return {row["file"]: row["label"] for row in csv.DictReader(file)}
    except (OSError, UnicodeDecodeError, KeyError, csv.Error) as error:
        raise VragError(
            f"{path}: cannot be read as labels ({type(error).__name__}: {error}); expected a CSV"
            " file with the columns file and label."
        ) from error


def class_of(file: str, labels: Mapping[str, str]) -> str:
    """Return the class of a corpus image, from `labels` or its file name; "" for an unknown
    class, and for query images.
    """
    if file in labels:
        return labels[file]
    for pattern in _IN_NAMES:
        if match := pattern.fullmatch(file):
            return match["label"]
    return ""


def example_pools(
    benchmark: Benchmark, labels: Mapping[str, str] | None = None
) -> dict[QueryId, tuple[DocId, ...]]:
    """Build each query's pool: its ground truth, then other corpus images of the same classes.

    Within a class they are sorted by id; query images are left out. The paper takes up to 20
    examples from such pools without saying how they are made; it reports their mean sizes, 20.4
    in Perspective and 5.9 in Transformative.
    """
    own = frozenset[DocId]().union(*benchmark.left_out.values())
    members: dict[str, list[DocId]] = defaultdict(list)
    of_document: dict[DocId, str] = {}
    for doc_id, document in sorted(benchmark.corpus.items()):
        label = class_of(str(document.metadata.get("file", "")), labels or {})
        if label and doc_id not in own:
            members[label].append(doc_id)
            of_document[doc_id] = label
    pools = {}
    for query_id in benchmark.queries:
        found = dict.fromkeys(benchmark.relevant(query_id))
        for doc_id in list(found):
            found |= dict.fromkeys(members.get(of_document.get(doc_id, ""), ()))
        pools[query_id] = tuple(found)
    return pools
