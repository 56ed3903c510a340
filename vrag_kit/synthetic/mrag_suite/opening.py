"""The synthetic MRAG-Suite, generated from the Field Guide in the layouts of its data sets, and
opened as a notebook's parameter names it, with what is known of it; or real data sets.

    <folder>/webqa/WebQA_train_val.json     snippets beside the guide's captioned images
    <folder>/chart-mrag/rows/…              as saved by `save_to_disk`
    <folder>/chart-mrag/text_corpus.jsonl   the sentences
    <folder>/chart-mrag/chart_texts.jsonl   the words of each chart
    <folder>/visrag-…/corpus, queries, qrels, page_texts.jsonl
                                            four page data sets, and the words of their pages
    <folder>/truth/<data set>.jsonl         what every document shows
    <folder>/edition.json                   edition and version; complete once all is written

Visual-RAG and MRAG-Bench have synthetic editions of their own. The same edition gives the same
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from vrag_kit.benchmarks import captions_only
from vrag_kit.benchmarks.datasets.collection import Entry, load_collection
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.files import project_path
from vrag_kit.log import progress
from vrag_kit.papers.mrag_suite.datasets import DATASETS
from vrag_kit.papers.mrag_suite.prompts import domain_of
from vrag_kit.synthetic.editions import DRAWN_SUITE, generate_once, read_note
from vrag_kit.synthetic.mrag_bench.drawing import generate_mrag_bench
from vrag_kit.synthetic.mrag_suite import facts, pages, webqa
from vrag_kit.synthetic.mrag_suite.ground_truth import GroundTruth
from vrag_kit.synthetic.visual_rag.guide import generate_field_guide
from vrag_kit.types import Benchmark

VISUAL_RAG = "Visual-RAG"
MRAG_BENCH = "MRAG-Bench"
WEBQA = "WebQA"
CHARTS = "Chart-MRAG"
DRAWN_HERE = (WEBQA, CHARTS, *pages.PAGE_SETS)
"""The data sets without an edition of their own."""


def generate_suite(edition: str, folder: Path | str) -> Path:
    """Generate an edition ("full" or "small") in `folder`, and the Field Guide that it is about in
    the project's data, unless they exist; returns the folder. Raises as `generate_once` does.
    """
    guide = project_path("data/field-guide" if edition == "full" else "data/field-guide-small")
    if edition in facts.EDITIONS:
        generate_field_guide(edition, guide)
    outputs = [*map(str.lower, DRAWN_HERE), "truth"]
    what = ("field-guide-mrag-suite", edition, facts.EDITIONS, folder)
    return generate_once(*what, partial(_draw, guide), outputs, guide_note=read_note(guide))


def _draw(guide: Path, edition: str, folder: Path) -> None:
    size = facts.EDITIONS[edition]
    others = facts.extra_species(size)
    label = f"drawing the suite ({size.seed})"
    for name in progress(DRAWN_HERE, label, len(DRAWN_HERE), "data sets"):
        seed, room = f"{size.seed}/{name}", folder / name.lower()
        if name == WEBQA:
            shown = webqa.write_webqa(guide, facts.suite_species(size), seed, room)
        elif name == CHARTS:
            shown = pages.write_charts(others, size.counts, seed, room)
        else:
            shown = pages.write_pages(*pages.PAGE_SETS[name](others, size.pages, seed), room)
        facts.write_ground_truth(shown, _ground_truth_file(folder, name))


def _ground_truth_file(folder: Path, dataset: str) -> Path:
    return folder / "truth" / f"{dataset.lower()}.jsonl"


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
    chosen = {*(names or entries), *in_words}
    if unknown := sorted(chosen - set(entries)):
        raise VragError(
            f"the suite has no data set {unknown[0]!r}; expected some of"
            f" {', '.join(entries)}.{did_you_mean(unknown[0], entries)}"
        )
    world = open_ground_truth(suite)
    if world and MRAG_BENCH in chosen:
        generate_mrag_bench(DRAWN_SUITE[str(suite)], project_path(entries[MRAG_BENCH]["rows"]))
    found = load_collection({name: entry for name, entry in entries.items() if name in chosen})
    if world:
        for name in chosen.intersection(DRAWN_HERE):
            found[name] = world.without_leaking_distractors(found[name])
    return {name: captions_only(each) if name in in_words else each for name, each in found.items()}


def open_ground_truth(suite: str | Mapping[str, Entry]) -> GroundTruth | None:
    """Return what is known of a synthetic edition, which is generated if it is missing; None for a
    mapping of real data sets.
    """
    if not isinstance(suite, str):
        return None
    edition, guide = DRAWN_SUITE[suite], project_path(_guide_of(suite))
    folder = generate_suite(edition, project_path(f"data/{suite}"))
    known = facts.suite_species(facts.EDITIONS[edition])
    by_name = {life.subject: life.species for life in known}
    shown = webqa.photograph_facts(guide, by_name)
    for name in DRAWN_HERE:
        shown |= facts.read_ground_truth(_ground_truth_file(folder, name))
    return GroundTruth(facts.FieldGuideGrammar(facts.names_to_species(known)), by_name, shown)


def _guide_of(suite: str) -> str:
    """The folder of the same edition of the Field Guide."""
    return f"data/{suite.replace('-mrag-suite', '')}"


def _entries(suite: str, in_words: Sequence[str]) -> dict[str, Entry]:
    """The entries of the data sets of a synthetic edition."""
    if suite not in DRAWN_SUITE:
        raise VragError(
            f"mrag_suite is {suite!r}; expected {' or '.join(map(repr, DRAWN_SUITE))}, which are"
            f" generated, or a mapping of data sets.{did_you_mean(suite, DRAWN_SUITE)}"
        )
    guide, mrag = _guide_of(suite), f"data/{suite.replace('-mrag-suite', '-mrag-bench')}"
    charts, web = (f"data/{suite}/{name.lower()}" for name in (CHARTS, WEBQA))
    chart_words = pages.CHART_WORDS if CHARTS in in_words else pages.CHART_TEXTS
    entries: dict[str, Entry] = {
        MRAG_BENCH: {"layout": "mrag-bench", "rows": mrag, "corpus": mrag},
        CHARTS: {
            "layout": "charts",
            "rows": f"{charts}/{pages.ROWS}",
            "texts": f"{charts}/{pages.SENTENCES}",
            "chart_texts": f"{charts}/{chart_words}",
        },
        VISUAL_RAG: {
            "layout": "visual-rag",
            "annotations": f"{guide}/annotations.jsonl",
            "image_root": f"{guide}/images",
        },
        WEBQA: {
            "layout": "webqa",
            "annotations": f"{web}/{webqa.ANNOTATIONS}",
            "images": f"{guide}/webqa/imgs.tsv",
        },
    }
    for name in pages.PAGE_SETS:
        rows = f"data/{suite}/{name.lower()}"
        words = pages.WORDS if name in in_words else pages.SIDECAR
        entries[name] = {"layout": "pages", "rows": rows, "ocr": f"{rows}/{words}"}
    return {name: {**entries[name], "domain": domain_of(name)} for name in DATASETS}
