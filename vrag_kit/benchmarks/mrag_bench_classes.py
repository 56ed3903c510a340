"""More pictures like a question's ground truth, as the number of examples beyond five
asks for: those of the corpus that are of the same class, by file name or label file.
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


def read_labels(path: Path | str) -> dict[str, str]:
    """File of the corpus → its class, from a CSV file with the columns file and label:
    for ImageNet's and Flowers' pictures, whose names tell none.

    Raises `VragError` for a file that cannot be read, or has other columns.
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
    """The class of a picture of the corpus; "" when neither `labels` nor its name tell
    it, and for queries' pictures.
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
    """For each query of an MRAG-Bench its ground truth, in order, and behind it the
    corpus' other pictures of the same classes, by name; never a query's own picture.

    The paper draws up to 20 examples from such pools and does not say how they are made;
    it prints their mean sizes, 20.4 in Perspective and 5.9 in Transformative.
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
