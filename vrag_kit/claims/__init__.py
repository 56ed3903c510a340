"""An answer's atomic claims: extraction, checking, verdicts, metrics and human labels."""

from vrag_kit.claims.checkers import (
    RuleChecker,
    RuleExtractor,
    forbid_self_check,
    load_checker,
    load_extractor,
)
from vrag_kit.claims.checking import check_answers
from vrag_kit.claims.human_labels import (
    add_human_verdicts,
    labels_from_verdicts,
    read_annotator_labels,
)
from vrag_kit.claims.label_agreement import annotator_agreement
from vrag_kit.claims.means import claim_means, claim_means_by_modality
from vrag_kit.claims.metrics import evidence_metrics, ragchecker_metrics
from vrag_kit.claims.ragchecker_json import complete_ragchecker_json, read_ragchecker_json
from vrag_kit.claims.verdicts import (
    AnswerText,
    ClaimChecker,
    ClaimExtractor,
    ClaimVerdicts,
    EntailmentLabel,
    EntailmentRequest,
)
