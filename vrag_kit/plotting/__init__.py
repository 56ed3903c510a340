"""Figures: one look, one way to save, one function each."""

from vrag_kit.plotting.across import across_figure
from vrag_kit.plotting.agreement import agreement_figure
from vrag_kit.plotting.answering import accuracy_figure, baseline_figure, side_by_side
from vrag_kit.plotting.arms import arms_figure
from vrag_kit.plotting.building import building_figure
from vrag_kit.plotting.captions import captions_figure
from vrag_kit.plotting.cases import cases_figure
from vrag_kit.plotting.claims import checker_figure, claims_figure, corrected_figure
from vrag_kit.plotting.classes import classes_figure
from vrag_kit.plotting.company import company_figure
from vrag_kit.plotting.curves import curves_figure
from vrag_kit.plotting.detection import detection_figure
from vrag_kit.plotting.differences import differences_figure
from vrag_kit.plotting.error_budget import budget_figure
from vrag_kit.plotting.gcue import gcue_figure
from vrag_kit.plotting.latex import as_latex
from vrag_kit.plotting.levels import levels_figure
from vrag_kit.plotting.pictures import asked_figure
from vrag_kit.plotting.retrieval import contact_sheet, retrieved_figure, retriever_figure
from vrag_kit.plotting.rouge import rouge_figure
from vrag_kit.plotting.save import save_figure
from vrag_kit.plotting.save_table import save_table
from vrag_kit.plotting.shares import shares_figure
from vrag_kit.plotting.slices import slices_figure
from vrag_kit.plotting.style import colors_of
from vrag_kit.plotting.swaps import outcomes_figure, swapped_figure
from vrag_kit.plotting.thresholds import threshold_figure
from vrag_kit.plotting.variants import variants_figure

__all__ = [
    "accuracy_figure",
    "across_figure",
    "agreement_figure",
    "arms_figure",
    "as_latex",
    "asked_figure",
    "baseline_figure",
    "budget_figure",
    "building_figure",
    "captions_figure",
    "cases_figure",
    "checker_figure",
    "claims_figure",
    "classes_figure",
    "colors_of",
    "company_figure",
    "contact_sheet",
    "corrected_figure",
    "curves_figure",
    "detection_figure",
    "differences_figure",
    "gcue_figure",
    "levels_figure",
    "outcomes_figure",
    "retrieved_figure",
    "retriever_figure",
    "rouge_figure",
    "save_figure",
    "save_table",
    "shares_figure",
    "side_by_side",
    "slices_figure",
    "swapped_figure",
    "threshold_figure",
    "variants_figure",
]
