"""Figures in one style: one function for each, and one to save them."""

from vrag_kit.plotting.diagnostics import confusion_plot, outcome_bars
from vrag_kit.plotting.images import (
    Tile,
    answer_gallery,
    contact_sheet,
    document_tile,
    image_grid,
    question_images,
    retrieved_images,
)
from vrag_kit.plotting.panels import forest_plot, line_plot, point_plot
from vrag_kit.plotting.save import concat_sources, save_figure
from vrag_kit.plotting.save_table import save_table, style_table, to_latex
from vrag_kit.plotting.style import model_colors
