"""Opens MRAG-Suite as a notebook's parameter names it: the eight data sets of a synthetic edition
with what is known of it, or real ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vrag_kit.benchmarks import captions_only
from vrag_kit.benchmarks.datasets.collection import Entry, load_collection
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.papers.mrag_suite.datasets import DATASETS
from vrag_kit.papers.mrag_suite.prompts import domain_of
from vrag_kit.synthetic.mrag_bench.drawing import generate_mrag_bench
from vrag_kit.synthetic.mrag_suite.charts import CHART_TEXTS, CHART_WORDS, ROWS, SENTENCES
from vrag_kit.synthetic.mrag_suite.drawing import (
    CHARTS,
    DRAWN_HERE,
    WEBQA,
    generate_suite,
    ground_truth_file,
    sibling_folder,
    suite_edition,
)
from vrag_kit.synthetic.mrag_suite.facts import FieldGuideGrammar, read_ground_truth
from vrag_kit.synthetic.mrag_suite.ground_truth import GroundTruth
from vrag_kit.synthetic.mrag_suite.pages import PAGE_SETS, SIDECAR, WORDS
from vrag_kit.synthetic.mrag_suite.species import EDITIONS, names_to_species, suite_species
from vrag_kit.synthetic.mrag_suite.webqa import ANNOTATIONS, photograph_facts
from vrag_kit.synthetic.visual_rag.guide import generate_field_guide
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path

VISUAL_RAG = "Visual-RAG"
MRAG_BENCH = "MRAG-Bench"


def open_suite(
    suite: str | Mapping[str, Entry],
    names: Sequence[str] | None = None,
    *,
    in_words: Sequence[str] = (),
) -> dict[str, Benchmark]:
    """Open the eight data sets of a synthetic edition (its name in `DRAWN_SUITE`) under the paper's
    names (`papers.mrag_suite.DATASETS`), generated if they are missing; or those that the entries
    of `load_collection` name. With `names` only these and those of `in_words` are generated and
    read. The documents of the data sets in `in_words` are shown as the words on them, without
    their images (`captions_only`), to models that read no print.

    Synthetic pages and charts have texts too: what an OCR program read of them, with its errors,
    and for those `in_words` the words on them. In a synthetic edition a document that tells the
    answer, and is not gold, may not be shown (`left_out`). Raises `VragError` for an unknown
    edition or name, and as generating and loading do.
    """
    entries = suite if isinstance(suite, Mapping) else _entries(suite, in_words)
    chosen = {*names, *in_words} if names else {*entries, *in_words}
    if unknown := sorted(chosen - set(entries)):
        hint = did_you_mean(unknown[0], entries)
        raise VragError(
            f"the suite has no data set {unknown[0]!r}; expected some of"
            f" {', '.join(entries)}.{hint}"
        )
    if isinstance(suite, str):
        _generate(suite, chosen)
    found = load_collection({name: entry for name, entry in entries.items() if name in chosen})
    leaking = chosen.intersection(DRAWN_HERE) if isinstance(suite, str) else ()  # else all is gold
    if leaking:
        world = open_ground_truth(str(suite))
        found |= {name: world.without_leaking_distractors(found[name]) for name in leaking}
    return {name: captions_only(each) if name in in_words else each for name, each in found.items()}


def open_ground_truth(suite: str) -> GroundTruth:
    """Return what is known of a synthetic edition, which is generated if it is missing."""
    folder, guide = generate_suite(suite)
    known = suite_species(EDITIONS[suite_edition(suite)])
    species = {life.subject: life.species for life in known}
    shown = photograph_facts(guide, species)
    for name in DRAWN_HERE:
        shown |= read_ground_truth(ground_truth_file(folder, name))
    return GroundTruth(FieldGuideGrammar(names_to_species(known)), species, shown)


def ground_truth_or_none(suite: str | Mapping[str, Entry]) -> GroundTruth | None:
    """Return what is known of a synthetic edition; None for a mapping of real data sets."""
    return open_ground_truth(suite) if isinstance(suite, str) else None


def _entries(suite: str, in_words: Sequence[str]) -> dict[str, Entry]:
    """The entries of the data sets of a synthetic edition."""
    suite_edition(suite)
    guide, mrag = sibling_folder(suite, ""), sibling_folder(suite, "-mrag-bench")
    folders = {name: f"data/{suite}/{name.lower()}" for name in DRAWN_HERE}
    chart_words = CHART_WORDS if CHARTS in in_words else CHART_TEXTS
    entries: dict[str, Entry] = {
        MRAG_BENCH: {"layout": "mrag-bench", "rows": mrag, "corpus": mrag},
        CHARTS: {
            "layout": "charts",
            "rows": f"{folders[CHARTS]}/{ROWS}",
            "texts": f"{folders[CHARTS]}/{SENTENCES}",
            "chart_texts": f"{folders[CHARTS]}/{chart_words}",
        },
        VISUAL_RAG: {
            "layout": "visual-rag",
            "annotations": f"{guide}/annotations.jsonl",
            "image_root": f"{guide}/images",
        },
        WEBQA: {
            "layout": "webqa",
            "annotations": f"{folders[WEBQA]}/{ANNOTATIONS}",
            "images": f"{guide}/webqa/imgs.tsv",
        },
    }
    for name in PAGE_SETS:
        words = WORDS if name in in_words else SIDECAR
        rows = folders[name]
        entries[name] = {"layout": "pages", "rows": rows, "ocr": f"{rows}/{words}"}
    return {name: {**entries[name], "domain": domain_of(name)} for name in DATASETS}


def _generate(suite: str, names: set[str]) -> None:
    """Generate what the data sets of these names need."""
    edition = suite_edition(suite)
    if MRAG_BENCH in names:
        generate_mrag_bench(edition, project_path(sibling_folder(suite, "-mrag-bench")))
    if names.intersection(DRAWN_HERE):
        generate_suite(suite)
    elif VISUAL_RAG in names:
        generate_field_guide(edition, project_path(sibling_folder(suite, "")))
