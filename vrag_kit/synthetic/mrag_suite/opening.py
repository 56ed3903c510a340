"""MRAG-Suite as a notebook's parameter names it: the eight data sets of a drawn edition,
with what is known about them because they were drawn, or real ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vrag_kit.benchmarks import captions_only
from vrag_kit.benchmarks.datasets.collection import Entry, load_collection
from vrag_kit.claims.verdicts import EntailmentLabel
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.papers.mrag_suite.printed import DATASETS
from vrag_kit.papers.mrag_suite.prompts import domain_of
from vrag_kit.synthetic.generate import DRAWN_SUITE
from vrag_kit.synthetic.guide import generate_field_guide
from vrag_kit.synthetic.mrag_bench.drawing import generate_mrag_bench
from vrag_kit.synthetic.mrag_suite.asking import trait_questions
from vrag_kit.synthetic.mrag_suite.charts import CHART_TEXTS, CHART_WORDS, ROWS, SENTENCES
from vrag_kit.synthetic.mrag_suite.data_sets import CHARTS, WEBQA
from vrag_kit.synthetic.mrag_suite.drawing import dataset_folder, generate_suite, ground_truth_file
from vrag_kit.synthetic.mrag_suite.edition import EDITIONS
from vrag_kit.synthetic.mrag_suite.facts import Fact, relation
from vrag_kit.synthetic.mrag_suite.ground_truth import Shown, read_ground_truth
from vrag_kit.synthetic.mrag_suite.language import FieldGuideGrammar
from vrag_kit.synthetic.mrag_suite.page_questions import PAGE_SETS
from vrag_kit.synthetic.mrag_suite.species_facts import (
    names_to_species,
    species_by_name,
    suite_species,
)
from vrag_kit.synthetic.mrag_suite.sub_questions import SubQuestion
from vrag_kit.synthetic.mrag_suite.visrag_writer import SIDECAR, WORDS
from vrag_kit.synthetic.mrag_suite.webqa import ANNOTATIONS, photograph_facts
from vrag_kit.synthetic.traits import Species
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import path as project_path

VISUAL_RAG = "Visual-RAG"
MRAG_BENCH = "MRAG-Bench"
_GUIDES = {"full": "field-guide", "small": "field-guide-small"}
_MRAG = {"full": "field-guide-mrag-bench", "small": "field-guide-mrag-bench-small"}


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """What is known of a drawn edition."""

    language: FieldGuideGrammar
    """Reads what is said about its species."""
    species: Mapping[str, Species]
    """By scientific name."""
    shown: Shown
    """Document → what it shows or tells, of all data sets but MRAG-Bench, whose
    organisms have no names.
    """

    def sub_questions(self, query: Query) -> list[SubQuestion]:
        """What is asked instead of a question, for `DecomposedBenchmark`: one short question a
        trait of the part that it is about; each reply becomes a sentence for each fact
        in it.
        """
        questions = trait_questions(query.text, self.language, self.species)
        return [SubQuestion(question, _Sentence(self.language, question)) for question in questions]

    def without_leaking_distractors(self, benchmark: Benchmark) -> Benchmark:
        """The same questions, to each of which no document is shown that tells a claim of
        its answer and is not labelled as gold: a distractor tells nothing that is asked.
        """
        by_subject: dict[str, list[str]] = {}
        for doc_id in benchmark.corpus:
            for subject in {fact.subject for fact in self.shown.get(doc_id, ())}:
                by_subject.setdefault(subject, []).append(doc_id)
        left_out = {}
        for query_id, query in benchmark.queries.items():
            claims = self.language.facts(" ".join(query.answers[:1]), query.text)
            near: set[str] = set()
            near.update(*(by_subject.get(claim.subject, ()) for claim in claims))
            near -= set(benchmark.relevant(query_id))
            telling = {each for each in near if _tells(self.shown[each], claims)}
            if telling:
                left_out[query_id] = benchmark.left_out.get(query_id, frozenset()) | telling
        if not left_out:
            return benchmark
        named = json.dumps({key: sorted(each) for key, each in left_out.items()})
        mark = hashlib.sha256(f"{benchmark.fingerprint} {named}".encode()).hexdigest()
        left_out = {**benchmark.left_out, **left_out}
        return replace(benchmark, left_out=left_out, fingerprint=mark)


def _tells(shown: Sequence[Fact], claims: Sequence[Fact]) -> bool:
    return any(relation(claim, shown) is EntailmentLabel.ENTAILMENT for claim in claims)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """Words a reply as sentences that stand alone; "" for one that tells nothing."""

    language: FieldGuideGrammar
    question: str

    def __call__(self, reply: str) -> str:
        return " ".join(self.language.claims(self.question, reply))


def open_suite(
    suite: str | Mapping[str, Entry],
    names: Sequence[str] | None = None,
    *,
    in_words: Sequence[str] = (),
) -> dict[str, Benchmark]:
    """The eight data sets of a synthetic edition (its name in `DRAWN_SUITE`) under the paper's
    names (`papers.mrag_suite.DATASETS`), generated if they are missing; or those that the
    entries of `load_collection` name. With `names` these only and those of `in_words`, and nothing
    else is drawn or read. The documents of the data sets in
    `in_words` are shown as the words that stand on them, without their images
    (`captions_only`): what a model that reads no print is asked with.

    Drawn pages and charts have texts too: what an OCR program read of them, with its
    errors, and for those `in_words` what really stands there. Of a drawn edition a
    document that tells what is asked, and is not gold, may not be shown (`left_out`).
    Raises `VragError` for an unknown edition or name, and as drawing and loading do.
    """
    entries = suite if isinstance(suite, Mapping) else _entries(suite, in_words)
    chosen = [*names, *in_words] if names else list(entries)
    if unknown := [name for name in (*chosen, *in_words) if name not in entries]:
        hint = did_you_mean(unknown[0], entries)
        raise VragError(
            f"the suite has no data set {unknown[0]!r}; expected some of"
            f" {', '.join(entries)}.{hint}"
        )
    wanted = {name: entry for name, entry in entries.items() if name in chosen}
    if isinstance(suite, str):
        _draw(suite, wanted)
    found = load_collection(wanted)
    labelled = {MRAG_BENCH, VISUAL_RAG}  # all that tells is gold there
    if isinstance(suite, str) and set(found) - labelled:
        world = open_ground_truth(suite)
        found |= {
            name: world.without_leaking_distractors(found[name])
            for name in found
            if name not in labelled
        }
    return {name: captions_only(each) if name in in_words else each for name, each in found.items()}


def open_ground_truth(suite: str) -> GroundTruth:
    """What is known of a drawn edition, which is drawn when it is not there."""
    edition = suite_edition(suite)
    folder, guide = generate_suite_with_guide(suite)
    known = suite_species(EDITIONS[edition])
    species = species_by_name(known)
    shown = photograph_facts(guide, species)
    for name in (WEBQA, CHARTS, *PAGE_SETS):
        shown |= read_ground_truth(ground_truth_file(folder, name))
    return GroundTruth(FieldGuideGrammar(names_to_species(known)), species, shown)


def suite_edition(suite: str) -> str:
    """The edition of a drawn suite, "full" or "small", by its name; raises `VragError`,
    with the nearest name, for another one.
    """
    if suite not in DRAWN_SUITE:
        hint = did_you_mean(suite, DRAWN_SUITE)
        raise VragError(
            f"mrag_suite is {suite!r}; expected {' or '.join(map(repr, DRAWN_SUITE))}, which are"
            f" generated, or a mapping of data sets.{hint}"
        )
    return DRAWN_SUITE[suite]


def generate_suite_with_guide(suite: str, folder: Path | str = "") -> tuple[Path, Path]:
    """Draw the edition of this name into `folder`, data/<name> unless given, with the
    Field Guide that it is about, where they are not there; returns both folders.
    """
    edition = suite_edition(suite)
    guide = generate_field_guide(edition, project_path(_guide(edition)))
    return generate_suite(edition, folder or project_path(f"data/{suite}"), guide), guide


def _entries(suite: str, in_words: Sequence[str]) -> dict[str, Entry]:
    """Where the data sets of a drawn edition are."""
    guide = _guide(suite_edition(suite))
    mrag = f"data/{_MRAG[suite_edition(suite)]}"
    here = f"data/{suite}"
    charts = f"{here}/{dataset_folder(CHARTS)}"
    chart_words = CHART_WORDS if CHARTS in in_words else CHART_TEXTS
    places: dict[str, Entry] = {
        MRAG_BENCH: {"layout": "mrag-bench", "rows": mrag, "corpus": mrag},
        CHARTS: {
            "layout": "charts",
            "rows": f"{charts}/{ROWS}",
            "texts": f"{charts}/{SENTENCES}",
            "chart_texts": f"{charts}/{chart_words}",
        },
        VISUAL_RAG: {
            "layout": "visual-rag",
            "annotations": f"{guide}/annotations.jsonl",
            "image_root": f"{guide}/images",
        },
        WEBQA: {
            "layout": "webqa",
            "annotations": f"{here}/{dataset_folder(WEBQA)}/{ANNOTATIONS}",
            "images": f"{guide}/webqa/imgs.tsv",
        },
    }
    for name in PAGE_SETS:
        rows = f"{here}/{dataset_folder(name)}"
        words = WORDS if name in in_words else SIDECAR
        places[name] = {"layout": "pages", "rows": rows, "ocr": f"{rows}/{words}"}
    return {name: {**places[name], "domain": domain_of(name)} for name in DATASETS}


def _guide(edition: str) -> str:
    return f"data/{_GUIDES[edition]}"


def _draw(suite: str, names: Mapping[str, Entry]) -> None:
    """Draw what the data sets of these names need."""
    edition = suite_edition(suite)
    if MRAG_BENCH in names:
        generate_mrag_bench(edition, project_path(f"data/{_MRAG[edition]}"))
    if VISUAL_RAG in names:
        generate_field_guide(edition, project_path(_guide(edition)))
    if set(names) - {MRAG_BENCH, VISUAL_RAG}:
        generate_suite_with_guide(suite)
