"""MRAG-Bench (Hu et al., ICLR 2025): its wordings and settings, the reader of choices
beside its own scorer, its results by scenario, the spelling of options, what retrievers
find, and its printed numbers with their audit.
"""

from vrag_kit.judging.choice_reader import read_choice, right_letters
from vrag_kit.papers.audit_rows import audit_summary, contradictions
from vrag_kit.papers.claim_rows import show_claims
from vrag_kit.papers.mrag_bench.across import among_retrieved, without_alike
from vrag_kit.papers.mrag_bench.audit import (
    ASPECTS,
    QUESTIONS,
    audit,
    by_questions,
    paper_tables,
    smallest_denominator,
)
from vrag_kit.papers.mrag_bench.audit_figure import audit_figure
from vrag_kit.papers.mrag_bench.choice_judge import ChoiceJudge
from vrag_kit.papers.mrag_bench.claims import at_chance, claims_on, claims_table, gains_said
from vrag_kit.papers.mrag_bench.examples_figure import examples_figure
from vrag_kit.papers.mrag_bench.extraction import (
    extracted_beside_ours,
    extraction_prompt,
    with_extracted,
)
from vrag_kit.papers.mrag_bench.found_and_right import (
    found_and_right,
    how_they_go_together,
    printed_found_and_right,
    with_found,
)
from vrag_kit.papers.mrag_bench.found_and_right_figure import found_and_right_figure
from vrag_kit.papers.mrag_bench.labelled_choices import labelled_choices, readers_on_labelled
from vrag_kit.papers.mrag_bench.official_scorer import (
    Official,
    Outcome,
    after_asking,
    official_reading,
    run_end,
)
from vrag_kit.papers.mrag_bench.people import answerers_agree, both_means, printed_people
from vrag_kit.papers.mrag_bench.positions import letters_chosen, over_rotations, with_letters
from vrag_kit.papers.mrag_bench.printed_text import retriever_correlations
from vrag_kit.papers.mrag_bench.readers import (
    accuracy_by_reading,
    official_runs,
    rules_of,
    with_official,
)
from vrag_kit.papers.mrag_bench.readers_figure import readers_figure
from vrag_kit.papers.mrag_bench.results import (
    CHANCE,
    accuracy_by_scenario,
    accuracy_of_choices,
    gains_by_scenario,
    is_papers_data,
    papers_mix,
    printed_gains,
    printed_main,
    printed_range,
    scenario_table,
    source_of,
    with_scenarios,
)
from vrag_kit.papers.mrag_bench.retrieval import (
    is_listed,
    planted_runs,
    printed_hits,
    retrieval_by_scenario,
    rows_run,
)
from vrag_kit.papers.mrag_bench.settings import (
    few_of_each,
    gt_at_each_place,
    gt_numbers,
    gt_rag,
    in_reverse,
    no_rag,
    retrieved_rag,
    rotated,
)
from vrag_kit.papers.mrag_bench.spelling import (
    guessed_table,
    options_spelt_alike,
    options_spelt_apart,
    spelling_baseline,
    spelling_by_scenario,
    spelt_alike,
    spelt_apart,
)
from vrag_kit.papers.mrag_bench.spelling_arms import (
    by_spelling,
    explained_by_spelling,
    spelling_arms,
)
from vrag_kit.papers.mrag_bench.statistics import distribution, statistics
from vrag_kit.papers.mrag_bench.statistics_figure import statistics_figure
from vrag_kit.papers.mrag_bench.swapped import swapped_examples, swapped_rag
from vrag_kit.papers.mrag_bench.text_settings import (
    TEXT_OR_IMAGE,
    gt_image_and_text,
    gt_text,
    printed_text_or_image,
    printed_text_or_image_gains,
    retrieved_text,
    with_passages,
)
from vrag_kit.papers.mrag_bench.turned import one_of_each, turned
from vrag_kit.papers.mrag_bench.wording import WORDINGS, wording_of

__all__ = [
    "ASPECTS",
    "CHANCE",
    "QUESTIONS",
    "TEXT_OR_IMAGE",
    "WORDINGS",
    "ChoiceJudge",
    "Official",
    "Outcome",
    "accuracy_by_reading",
    "accuracy_by_scenario",
    "accuracy_of_choices",
    "after_asking",
    "among_retrieved",
    "answerers_agree",
    "at_chance",
    "audit",
    "audit_figure",
    "audit_summary",
    "both_means",
    "by_questions",
    "by_spelling",
    "claims_on",
    "claims_table",
    "contradictions",
    "distribution",
    "examples_figure",
    "explained_by_spelling",
    "extracted_beside_ours",
    "extraction_prompt",
    "few_of_each",
    "found_and_right",
    "found_and_right_figure",
    "gains_by_scenario",
    "gains_said",
    "gt_at_each_place",
    "gt_image_and_text",
    "gt_numbers",
    "gt_rag",
    "gt_text",
    "guessed_table",
    "how_they_go_together",
    "in_reverse",
    "is_listed",
    "is_papers_data",
    "labelled_choices",
    "letters_chosen",
    "no_rag",
    "official_reading",
    "official_runs",
    "one_of_each",
    "options_spelt_alike",
    "options_spelt_apart",
    "over_rotations",
    "paper_tables",
    "papers_mix",
    "planted_runs",
    "printed_found_and_right",
    "printed_gains",
    "printed_hits",
    "printed_main",
    "printed_people",
    "printed_range",
    "printed_text_or_image",
    "printed_text_or_image_gains",
    "read_choice",
    "readers_figure",
    "readers_on_labelled",
    "retrieval_by_scenario",
    "retrieved_rag",
    "retrieved_text",
    "retriever_correlations",
    "right_letters",
    "rotated",
    "rows_run",
    "rules_of",
    "run_end",
    "scenario_table",
    "show_claims",
    "smallest_denominator",
    "source_of",
    "spelling_arms",
    "spelling_baseline",
    "spelling_by_scenario",
    "spelt_alike",
    "spelt_apart",
    "statistics",
    "statistics_figure",
    "swapped_examples",
    "swapped_rag",
    "turned",
    "with_extracted",
    "with_found",
    "with_letters",
    "with_official",
    "with_passages",
    "with_scenarios",
    "without_alike",
    "wording_of",
]
