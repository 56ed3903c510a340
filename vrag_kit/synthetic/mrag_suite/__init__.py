"""MRAG-Suite drawn from the Field Guide: eight data sets in their own layouts, the
language that they speak, what each of their documents shows, and checkers of claims.
"""

from vrag_kit.synthetic.mrag_suite.ambiguity import make_ambiguous
from vrag_kit.synthetic.mrag_suite.assessing import (
    PUT_BACK,
    RULE,
    TRUTH,
    detect_ambiguity,
    open_ambiguous,
    rewrite_questions,
)
from vrag_kit.synthetic.mrag_suite.by_construction import fixed_means
from vrag_kit.synthetic.mrag_suite.checking import open_rule_checker
from vrag_kit.synthetic.mrag_suite.closed_book import ask_closed_book
from vrag_kit.synthetic.mrag_suite.drawing import generate_suite
from vrag_kit.synthetic.mrag_suite.facts import Fact, relation
from vrag_kit.synthetic.mrag_suite.ground_truth import OracleClaimChecker
from vrag_kit.synthetic.mrag_suite.in_words import WITH_WORDS, TextOnlyEvaluation
from vrag_kit.synthetic.mrag_suite.judges import open_judges
from vrag_kit.synthetic.mrag_suite.long_answers import (
    LongAnswerExperiment,
    ground_truth_or_none,
    open_claim_pipeline,
    with_reference_answers,
)
from vrag_kit.synthetic.mrag_suite.looking import VisualClaimChecker
from vrag_kit.synthetic.mrag_suite.opening import GroundTruth, open_ground_truth, open_suite
from vrag_kit.synthetic.mrag_suite.prompts import (
    FIELD_GUIDE,
    load_prompt_sweep,
    load_prompts,
    load_prompts_by_dataset,
)
from vrag_kit.synthetic.mrag_suite.true_claims import OracleClaims

__all__ = [
    "FIELD_GUIDE",
    "PUT_BACK",
    "RULE",
    "TRUTH",
    "WITH_WORDS",
    "Fact",
    "GroundTruth",
    "LongAnswerExperiment",
    "OracleClaimChecker",
    "OracleClaims",
    "TextOnlyEvaluation",
    "VisualClaimChecker",
    "ask_closed_book",
    "detect_ambiguity",
    "fixed_means",
    "generate_suite",
    "ground_truth_or_none",
    "load_prompt_sweep",
    "load_prompts",
    "load_prompts_by_dataset",
    "make_ambiguous",
    "open_ambiguous",
    "open_claim_pipeline",
    "open_ground_truth",
    "open_judges",
    "open_rule_checker",
    "open_suite",
    "relation",
    "rewrite_questions",
    "with_reference_answers",
]
