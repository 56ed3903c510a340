"""MRAG-Suite (Ji, 2025): its printed numbers with their audit, and the words of its
prompts.
"""

from vrag_kit.papers.audit_rows import audit_summary, contradictions
from vrag_kit.papers.mrag_suite.audit import audit, paper_tables
from vrag_kit.papers.mrag_suite.audit_claims import (
    claim_rows,
    inequalities,
    near_copies,
    readings,
)
from vrag_kit.papers.mrag_suite.audit_figure import audit_figure, inequality_figure
from vrag_kit.papers.mrag_suite.beside_print import (
    DEFINITIONS,
    beside_print,
    claims_beside_print,
)
from vrag_kit.papers.mrag_suite.own_metrics import OWN_METRIC
from vrag_kit.papers.mrag_suite.printed import (
    DATASETS,
    MODELS,
    MODES,
    TEXT_ONLY,
    printed_accuracy,
    printed_ambiguous,
    printed_best_prompts,
    printed_claims,
    printed_clear_and_ambiguous,
    printed_data,
    printed_gaps,
    printed_modes,
    printed_range,
)
from vrag_kit.papers.mrag_suite.printed_text import claims
from vrag_kit.papers.mrag_suite.prompts import (
    EXAMPLES,
    INIT,
    PROMPTS,
    REASONING,
    PromptDesign,
    domain_of,
    prompt_design,
)
from vrag_kit.papers.mrag_suite.wording import SETTINGS, suite_wording

__all__ = [
    "DATASETS",
    "DEFINITIONS",
    "EXAMPLES",
    "INIT",
    "MODELS",
    "MODES",
    "OWN_METRIC",
    "PROMPTS",
    "REASONING",
    "SETTINGS",
    "TEXT_ONLY",
    "PromptDesign",
    "audit",
    "audit_figure",
    "audit_summary",
    "beside_print",
    "claim_rows",
    "claims",
    "claims_beside_print",
    "contradictions",
    "domain_of",
    "inequalities",
    "inequality_figure",
    "near_copies",
    "paper_tables",
    "printed_accuracy",
    "printed_ambiguous",
    "printed_best_prompts",
    "printed_claims",
    "printed_clear_and_ambiguous",
    "printed_data",
    "printed_gaps",
    "printed_modes",
    "printed_range",
    "prompt_design",
    "readings",
    "suite_wording",
]
