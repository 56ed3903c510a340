"""Figures: one look, one way to save, one function each."""

from vrag_kit.plotting.benchmark import benchmark_figure
from vrag_kit.plotting.retrieval import contact_sheet, retrieved_figure, retriever_figure
from vrag_kit.plotting.save import save_figure
from vrag_kit.plotting.style import color_of, new_figure

__all__ = ["benchmark_figure", "color_of", "contact_sheet", "new_figure", "retrieved_figure", "retriever_figure", "save_figure"]
