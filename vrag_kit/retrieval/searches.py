"""Cache of finished searches on disk: a cached run is read back without loading a model.

<root>/<encoder>-<fingerprint>/runs/<key>.json holds the rows of a run. The key is a hash of
everything that determines them: the encoder, the encoded parts of each question, the candidates,
the stamps of the documents, and k.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.runs import make_run
from vrag_kit.types import Benchmark

_RULE = 1
"""Version of this module's key, and of the search itself."""


def search_key(benchmark: Benchmark, encoder: Encoder, k: int) -> str:
    """Returns a hash of everything that determines the encoder's results for the benchmark.

    Raises `VragError` for a question without a part that is encoded, and for an image whose file is
    missing.
    """
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        digest.update(json.dumps(parts).encode())

    add(_RULE, encoder.fingerprint, k, len(benchmark.queries))
    for query_id, query in benchmark.queries.items():
        text, image = encoder.shown.of_query(query, encoder.name)
        add(query_id, text, None if image is None else image.stamp)
        add(benchmark.candidates(query_id))
        if left_out := benchmark.left_out.get(query_id):
            add("without", sorted(left_out))
    for doc_id, document in benchmark.corpus.items():
        add(doc_id, encoder.shown.stamp(document))
    return digest.hexdigest()


def read_cached_run(folder: Path, key: str) -> pd.DataFrame | None:
    """Returns the run of a finished search; None if it is missing, damaged or without checksum.
    Searches made before vectors had checksums have none.
    """
    try:
        stored = json.loads(_path(folder, key).read_text(encoding="utf-8"))
        if stored["key"] != key or stored["crc32"] != _crc32(stored["run"]):
            return None
        return make_run((str(query), str(doc), float(score)) for query, doc, score in stored["run"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_cached_run(folder: Path, key: str, run: pd.DataFrame) -> None:
    """Stores a finished search, whose scores are read back bit for bit.

    Raises `VragError` when it cannot be written.
    """
    rows = list(run[["query_id", "doc_id", "score"]].itertuples(index=False, name=None))
    stored = {"key": key, "crc32": _crc32(rows), "run": rows}
    try:
        write_file(_path(folder, key), json.dumps(stored))
    except OSError as error:
        raise VragError(
            f"{folder}: the run cannot be stored ({error.strerror or error}). Free space or choose"
            " another `cache_dir`."
        ) from error


def _crc32(rows: object) -> int:
    return zlib.crc32(json.dumps(rows).encode())


def _path(folder: Path, key: str) -> Path:
    return folder / "runs" / f"{key[:32]}.json"
