"""MRAG-Bench as a notebook's parameters name it: a synthetic edition, or the real data."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.benchmarks.datasets.mrag_bench import load_mrag_bench
from vrag_kit.benchmarks.datasets.mrag_bench_corpora import load_mrag_texts, read_class_labels
from vrag_kit.errors import VragError
from vrag_kit.synthetic.editions import DRAWN_MRAG, edition_or_rows
from vrag_kit.synthetic.mrag_bench.drawing import LABELS_FILE, generate_mrag_bench
from vrag_kit.synthetic.mrag_bench.passages import TEXTS
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path


def open_mrag_bench(
    mrag_rows: str,
    mrag_corpus: str = "",
    *,
    cache_dir: Path | str | None = None,
) -> Benchmark:
    """A synthetic edition by its name in `DRAWN_MRAG`, generated if its folder is missing; or
    the rows in a folder of parquet shards or of a data set of the hub, with the folder of
    the corpus ("": the images of the rows).

    Raises `VragError` as drawing and loading do, for a name that is neither, and for a
    corpus beside a drawn edition.
    """
    rows, is_edition = edition_or_rows(
        "mrag_rows", mrag_rows, DRAWN_MRAG, generate_mrag_bench, mrag_corpus
    )
    if is_edition:
        return load_mrag_bench(rows, rows, cache_dir=cache_dir, name=mrag_rows)
    corpus = project_path(mrag_corpus) if mrag_corpus else None
    return load_mrag_bench(rows, corpus, cache_dir=cache_dir)


def open_mrag_passages(benchmark: Benchmark, mrag_texts: str) -> Benchmark:
    """The benchmark's questions over passages of text: those of a drawn edition, or those
    in a folder of `passages.csv` and `ground_truth.csv`.

    Raises `VragError` as `load_mrag_texts` and `edition_or_rows` do, for "", and for the
    passages of a drawn edition beside other questions.
    """
    if not mrag_texts:
        raise VragError(
            'mrag_texts is "", but MRAG-Bench comes without texts. Write passages.csv'
            " (passage,text) and ground_truth.csv (question,passage) into a folder, and name it."
        )
    if mrag_texts in DRAWN_MRAG and benchmark.name != mrag_texts:
        raise VragError(
            f"mrag_texts is {mrag_texts!r}, but the questions are {benchmark.name!r}, of which"
            " these passages tell nothing. Name a folder with passages about them."
        )
    given, is_edition = edition_or_rows("mrag_texts", mrag_texts, DRAWN_MRAG, generate_mrag_bench)
    folder = Path(given)
    return load_mrag_texts(benchmark, folder / TEXTS if is_edition else folder)


def open_class_labels(mrag_rows: str, mrag_labels: str = "") -> dict[str, str]:
    """File of the corpus → its class, where its name does not tell it: what comes with a
    drawn edition, or the CSV file `mrag_labels` (`read_class_labels`); none for "".
    """
    if mrag_rows in DRAWN_MRAG and not mrag_labels:
        return read_class_labels(project_path(f"data/{mrag_rows}") / LABELS_FILE)
    return read_class_labels(project_path(mrag_labels)) if mrag_labels else {}
