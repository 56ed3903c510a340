"""Figures in one style: one function for each, and one to save them."""

from vrag_kit.plotting.across import score_matrix
from vrag_kit.plotting.answering import accuracy_figure, baseline_figure, concat_sources
from vrag_kit.plotting.arms import paired_tests_figure
from vrag_kit.plotting.building import funnel_figure
from vrag_kit.plotting.diagnostics import confusion_plot, heat_table, outcome_bars
from vrag_kit.plotting.differences import old_forest
from vrag_kit.plotting.gcue import gcue_figure
from vrag_kit.plotting.images import (
    Tile,
    answer_gallery,
    contact_sheet,
    document_tile,
    evidence_images,
    image_grid,
    question_images,
    retrieved_images,
)
from vrag_kit.plotting.levels import old_points
from vrag_kit.plotting.panels import forest_plot, line_plot, point_plot
from vrag_kit.plotting.save import save_figure, show_figure
from vrag_kit.plotting.save_table import save_table, to_latex
from vrag_kit.plotting.style import model_colors
from vrag_kit.plotting.variants import old_lines

__all__ = [
    "Tile",
    "accuracy_figure",
    "answer_gallery",
    "baseline_figure",
    "concat_sources",
    "confusion_plot",
    "contact_sheet",
    "document_tile",
    "evidence_images",
    "forest_plot",
    "funnel_figure",
    "gcue_figure",
    "heat_table",
    "image_grid",
    "line_plot",
    "model_colors",
    "old_forest",
    "old_lines",
    "old_points",
    "outcome_bars",
    "paired_tests_figure",
    "point_plot",
    "question_images",
    "retrieved_images",
    "save_figure",
    "save_table",
    "score_matrix",
    "show_figure",
    "to_latex",
]
