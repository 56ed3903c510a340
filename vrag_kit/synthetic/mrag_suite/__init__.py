"""The synthetic MRAG-Suite: eight data sets in their own layouts, generated from the Field Guide,
what is known of their documents, and experiments with the models of the kit.
"""

from vrag_kit.synthetic.mrag_suite.ambiguity import (
    PUT_BACK,
    TRUTH,
    detect_ambiguity,
    open_ambiguous,
    rewrite_questions,
)
from vrag_kit.synthetic.mrag_suite.ground_truth import fixed_means
from vrag_kit.synthetic.mrag_suite.opening import (
    open_ground_truth,
    open_suite,
)
from vrag_kit.synthetic.mrag_suite.prompts import (
    WITH_WORDS,
    ask_as_text,
    ask_closed_book,
    ask_long,
    check_by_truth,
    check_claims,
    load_prompt_sweep,
    load_prompts_by_dataset,
    long_questions,
    open_claim_pipeline,
    open_judges,
)
