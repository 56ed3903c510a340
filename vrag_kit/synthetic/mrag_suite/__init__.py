"""The synthetic MRAG-Suite: eight data sets in their own layouts, generated from the Field Guide,
what is known of their documents, and experiments with the models of the kit.
"""

from vrag_kit.synthetic.mrag_suite.ambiguity import PUT_BACK as PUT_BACK
from vrag_kit.synthetic.mrag_suite.ambiguity import TRUTH as TRUTH
from vrag_kit.synthetic.mrag_suite.ambiguity import detect_ambiguity as detect_ambiguity
from vrag_kit.synthetic.mrag_suite.ambiguity import open_ambiguous as open_ambiguous
from vrag_kit.synthetic.mrag_suite.ambiguity import rewrite_questions as rewrite_questions
from vrag_kit.synthetic.mrag_suite.ground_truth import fixed_means as fixed_means
from vrag_kit.synthetic.mrag_suite.long_answers import LongAnswerExperiment as LongAnswerExperiment
from vrag_kit.synthetic.mrag_suite.long_answers import OracleClaims as OracleClaims
from vrag_kit.synthetic.mrag_suite.long_answers import open_claim_pipeline as open_claim_pipeline
from vrag_kit.synthetic.mrag_suite.opening import ground_truth_or_none as ground_truth_or_none
from vrag_kit.synthetic.mrag_suite.opening import open_ground_truth as open_ground_truth
from vrag_kit.synthetic.mrag_suite.opening import open_suite as open_suite
from vrag_kit.synthetic.mrag_suite.prompts import WITH_WORDS as WITH_WORDS
from vrag_kit.synthetic.mrag_suite.prompts import TextOnlyEvaluation as TextOnlyEvaluation
from vrag_kit.synthetic.mrag_suite.prompts import ask_closed_book as ask_closed_book
from vrag_kit.synthetic.mrag_suite.prompts import load_prompt_sweep as load_prompt_sweep
from vrag_kit.synthetic.mrag_suite.prompts import load_prompts_by_dataset as load_prompts_by_dataset
from vrag_kit.synthetic.mrag_suite.prompts import open_judges as open_judges
