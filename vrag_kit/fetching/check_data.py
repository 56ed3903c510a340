"""Check a benchmark's data and print the findings (`vrag check`)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.mrag_bench import CORPUS
from vrag_kit.errors import VragError
from vrag_kit.fetching.crag_mm_health import check_crag_mm, find_datasets
from vrag_kit.fetching.data_folder import find_data
from vrag_kit.fetching.health import KINDS, check_visual_rag
from vrag_kit.fetching.mrag_bench_health import check_mrag_bench
from vrag_kit.fetching.suite_health import check_suite, suite_sets
from vrag_kit.files import write_file
from vrag_kit.log import logger

MOST_ROWS = 50
"""Maximum rows of a printed table; `--csv` writes all."""

_NAMES = {"row": "bad rows", "missing": "missing", "damaged": "damaged", "odd": "odd"}


def check_data(target: Path, image_root: Path | None, *, csv: Path | None = None) -> bool:
    """Print the problems of a benchmark's files; returns whether there are faults.

    Odd findings are not faults. `target` is an annotation file with its `image_root`, or,
    alone, a folder that `find_data` understands; or a folder of MRAG-Bench's shards, with the
    folder of its corpus unless it is inside; or one of CRAG-MM, with the folder of its images
    unless it is "images" next to the rows; or one of pages, charts and WebQA. `csv` receives
    every finding.
    """
    if find_datasets(target):
        return _check_crag_mm(target, image_root, csv)
    if image_root is None and suite_sets(target):
        return _check_suite(target, csv)
    if _has_shards(target):
        return _check_mrag_bench(target, image_root, csv)
    if image_root is None and not target.is_dir():
        raise VragError(
            f"{target} is no parameter file (.yaml) and no folder. To check a benchmark, name its"
            f" images too: `vrag check {target} <image folder>`."
        )
    annotations = target
    if image_root is None:
        annotations, image_root = find_data(target)
    logger.info(f"annotations: {annotations}\nimages: {image_root}")
    findings = check_visual_rag(annotations, image_root)
    logger.info(_summary(findings))
    _show(_folded(findings), csv)
    if csv:
        _write(csv, findings)
    return bool(set(findings["kind"]) - {"odd"})


def _has_shards(folder: Path) -> bool:
    """Whether there are parquet files in a folder, or in its folder "data"."""
    return any(folder.glob("*.parquet")) or any(folder.glob("data/*.parquet"))


def _check_mrag_bench(rows: Path, corpus: Path | None, csv: Path | None) -> bool:
    """The same of MRAG-Bench's rows and corpus."""
    beside = rows / CORPUS
    corpus = corpus or (beside if beside.is_dir() else None)
    logger.info(f"rows: {rows}\ncorpus: {corpus or 'none; only the rows are checked'}")
    findings = check_mrag_bench(rows, corpus)
    logger.info(_summary(findings))
    _show(_folded(findings), csv)
    if csv:
        _write(csv, findings)
    return bool(set(findings["kind"]) - {"odd"})


def _check_crag_mm(folder: Path, images: Path | None, csv: Path | None) -> bool:
    """The same of CRAG-MM's rows, pictures and indexes; with counts of labels."""
    logger.info(f"CRAG-MM: {', '.join(map(str, find_datasets(folder).values()))}")
    check = check_crag_mm(folder, images)
    logger.info("\n".join(_lines(check.counts.astype(object))))
    logger.info(_summary(check.findings))
    _show(_folded(check.findings), csv)
    if csv:
        _write(csv, check.findings)
        _write(csv.with_name(f"{csv.stem}_counts.csv"), check.counts)
    return bool(set(check.findings["kind"]) - {"odd"})


def _check_suite(folder: Path, csv: Path | None) -> bool:
    """The same of pages, charts and WebQA; with how much each holds."""
    check = check_suite(folder)
    logger.info("\n".join(_lines(check.counts.astype(object))))
    logger.info(_summary(check.findings))
    _show(_folded(check.findings), csv)
    if csv:
        _write(csv, check.findings)
        _write(csv.with_name(f"{csv.stem}_counts.csv"), check.counts)
    return bool(set(check.findings["kind"]) - {"odd"})


def _summary(findings: pd.DataFrame, most: int = 5) -> str:
    """Counts by kind, and of what is odd, by what it is."""
    kinds = findings["kind"].value_counts()
    lines = [", ".join(f"{_NAMES[kind]}: {kinds.get(kind, 0):,}" for kind in KINDS)]
    odd = findings.loc[findings["kind"] == "odd", "found"].value_counts()
    reasons = [f"{_plain(reason)} ({count:,})" for reason, count in odd.head(most).items()]
    if len(odd) > most:
        reasons.append("…")
    if reasons:
        lines.append(f"odd are: {', '.join(reasons)}")
    return "\n".join(lines)


def _folded(findings: pd.DataFrame) -> pd.DataFrame:
    """The findings with one row for all that are odd in the same words, the first."""
    odd = findings["kind"] == "odd"
    alike = findings.groupby(["kind", "found"])["found"].transform("size")
    words = findings["found"] + alike.map("; {:,} such findings".format)
    told = findings["found"].mask(odd & (alike > 1), words)
    return findings.assign(found=told)[~odd | ~findings.duplicated(["kind", "found"])]


def _show(table: pd.DataFrame, csv: Path | None) -> None:
    """Print the first rows; `csv` is where all of them will be."""
    if not table.empty:
        logger.info("\n".join(_lines(table.head(MOST_ROWS))))
    if len(table) > MOST_ROWS:
        advice = "" if csv else "; --csv FILE writes all"
        logger.info(f"… and {len(table) - MOST_ROWS:,} more{advice}")


def _write(csv: Path, table: pd.DataFrame) -> None:
    write_file(csv, table.to_csv(index=False))
    logger.info(f"written to {csv}")


def _lines(table: pd.DataFrame) -> list[str]:
    """The table in columns; all but the last are padded, and cut when very long."""
    rows = [list(table.columns)]
    rows += [[_plain(cell) for cell in row] for row in table.itertuples(index=False)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    padded = [_padded(column) for column in columns[:-1]]
    lines = zip(*padded, columns[-1], strict=True)
    return ["  ".join(cells).rstrip() for cells in lines]


def _padded(column: list[str], widest: int = 64) -> list[str]:
    """Cells of one width, long ones cut in front: what tells names apart stands at
    their ends.
    """
    cut = [cell if len(cell) <= widest else f"…{cell[1 - widest :]}" for cell in column]
    width = max(map(len, cut))
    return [cell.ljust(width) for cell in cut]


def _plain(cell: object) -> str:
    """A cell as text that cannot move the cursor."""
    text = "" if cell is None or cell is pd.NA else str(cell)
    return "".join(character if character.isprintable() else "�" for character in text)
