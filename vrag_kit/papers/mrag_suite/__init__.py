"""MRAG-Suite (Ji, 2025): its printed numbers, and the words of its prompts."""

from vrag_kit.papers.mrag_suite.beside_print import (
    DEFINITIONS,
    beside_print,
    claims_beside_print,
)
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
from vrag_kit.papers.mrag_suite.prompts import (
    EXAMPLES,
    INIT,
    PROMPTS,
    REASONING,
    PromptDesign,
    domain_of,
    prompt_design,
)

__all__ = [
    "DATASETS",
    "DEFINITIONS",
    "EXAMPLES",
    "INIT",
    "MODELS",
    "MODES",
    "PROMPTS",
    "REASONING",
    "TEXT_ONLY",
    "PromptDesign",
    "beside_print",
    "claims_beside_print",
    "domain_of",
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
]
