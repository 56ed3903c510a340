"""Make a benchmark of one's own: species, questions, a coarse filter, annotation by
people, agreement, the final rule (Visual-RAG, section 4 and appendix C).
"""

from vrag_kit.building.agreement import annotator_agreement, find_disputes, read_logs, read_ruling
from vrag_kit.building.deciding import decide, write_benchmark
from vrag_kit.building.folders import read_folders
from vrag_kit.building.overview import (
    decisions_table,
    filter_beside_annotators,
    funnel,
    suggestions,
)
from vrag_kit.building.panel import annotate, annotation_page
from vrag_kit.building.presence import ask_presence, coarse_filter
from vrag_kit.building.questions import questions_file, read_questions
from vrag_kit.building.species import choose_species
from vrag_kit.building.writing import write_questions

__all__ = [
    "annotate",
    "annotation_page",
    "annotator_agreement",
    "ask_presence",
    "choose_species",
    "coarse_filter",
    "decide",
    "decisions_table",
    "filter_beside_annotators",
    "find_disputes",
    "funnel",
    "questions_file",
    "read_folders",
    "read_logs",
    "read_questions",
    "read_ruling",
    "suggestions",
    "write_benchmark",
    "write_questions",
]
