"""Figures in one style: one function for each, and one to save them."""

from vrag_kit.plotting.across import score_matrix
from vrag_kit.plotting.agreement import agreement_figure
from vrag_kit.plotting.answering import accuracy_figure, baseline_figure, concat_sources
from vrag_kit.plotting.arms import paired_tests_figure
from vrag_kit.plotting.building import funnel_figure
from vrag_kit.plotting.captions import caption_retrieval_figure
from vrag_kit.plotting.claims import (
    checker_confusion_figure,
    claims_figure,
    corrected_claims_figure,
)
from vrag_kit.plotting.classes import class_metrics_figure
from vrag_kit.plotting.curves import curve_panels
from vrag_kit.plotting.detection import detection_figure
from vrag_kit.plotting.differences import forest_plot
from vrag_kit.plotting.distractors import distractor_cost_figure
from vrag_kit.plotting.gcue import gcue_figure
from vrag_kit.plotting.images import question_images
from vrag_kit.plotting.levels import point_plot
from vrag_kit.plotting.retrieval import contact_sheet, retrieved_images, retriever_figure
from vrag_kit.plotting.rouge import rouge_figure
from vrag_kit.plotting.save import save_figure
from vrag_kit.plotting.save_table import save_table, to_latex
from vrag_kit.plotting.shares import label_share_figure
from vrag_kit.plotting.slices import slice_forest_plot
from vrag_kit.plotting.style import model_colors
from vrag_kit.plotting.swaps import counterfactual_images, outcome_shares_figure
from vrag_kit.plotting.thresholds import threshold_figure
from vrag_kit.plotting.variants import line_plot

__all__ = [
    "accuracy_figure",
    "agreement_figure",
    "baseline_figure",
    "caption_retrieval_figure",
    "checker_confusion_figure",
    "claims_figure",
    "class_metrics_figure",
    "concat_sources",
    "contact_sheet",
    "corrected_claims_figure",
    "counterfactual_images",
    "curve_panels",
    "detection_figure",
    "distractor_cost_figure",
    "forest_plot",
    "funnel_figure",
    "gcue_figure",
    "label_share_figure",
    "line_plot",
    "model_colors",
    "outcome_shares_figure",
    "paired_tests_figure",
    "point_plot",
    "question_images",
    "retrieved_images",
    "retriever_figure",
    "rouge_figure",
    "save_figure",
    "save_table",
    "score_matrix",
    "slice_forest_plot",
    "threshold_figure",
    "to_latex",
]
