"""Build a custom benchmark: species, questions, a coarse filter, annotation by people, agreement,
the final rule (Visual-RAG, section 4 and appendix C).
"""

from vrag_kit.building.annotation_panel import annotate, annotation_page
from vrag_kit.building.annotations import read_annotation_files, read_annotations
from vrag_kit.building.benchmark_files import write_benchmark
from vrag_kit.building.decisions import (
    annotator_agreement,
    decide_questions,
    decisions_table,
    filter_vs_annotators,
    find_disputes,
    question_funnel,
    suggested_questions,
)
from vrag_kit.building.questions import load_or_write_questions, read_questions, write_questions
from vrag_kit.building.rates_figure import clue_rate_figure
from vrag_kit.building.species import read_species_folders, select_species
from vrag_kit.building.visibility import coarse_filter, detect_feature
