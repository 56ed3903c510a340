"""Figures: one look, one way to save, one function each."""

from vrag_kit.plotting.answering import accuracy_figure, baseline_figure, gcue_figure, side_by_side
from vrag_kit.plotting.benchmark import benchmark_figure
from vrag_kit.plotting.retrieval import contact_sheet, retrieved_figure, retriever_figure
from vrag_kit.plotting.save import save_figure
from vrag_kit.plotting.style import colors_of, new_figure

__all__ = ["accuracy_figure", "baseline_figure", "benchmark_figure", "colors_of", "contact_sheet", "gcue_figure", "new_figure", "retrieved_figure",
           "retriever_figure", "save_figure", "side_by_side"]
