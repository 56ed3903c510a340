"""An answer's atomic claims: extraction, checking, verdicts, metrics and human labels."""

from vrag_kit.claims.checkers import RuleChecker as RuleChecker
from vrag_kit.claims.checkers import RuleExtractor as RuleExtractor
from vrag_kit.claims.checkers import forbid_self_check as forbid_self_check
from vrag_kit.claims.checkers import load_checker as load_checker
from vrag_kit.claims.checkers import load_extractor as load_extractor
from vrag_kit.claims.checking import check_answers as check_answers
from vrag_kit.claims.human_labels import add_human_verdicts as add_human_verdicts
from vrag_kit.claims.human_labels import labels_from_verdicts as labels_from_verdicts
from vrag_kit.claims.human_labels import read_annotator_labels as read_annotator_labels
from vrag_kit.claims.label_agreement import annotator_agreement as annotator_agreement
from vrag_kit.claims.label_agreement import compare_label_sources as compare_label_sources
from vrag_kit.claims.means import claim_means as claim_means
from vrag_kit.claims.means import claim_means_by_modality as claim_means_by_modality
from vrag_kit.claims.means import claim_values as claim_values
from vrag_kit.claims.metrics import evidence_metrics as evidence_metrics
from vrag_kit.claims.metrics import ragchecker_metrics as ragchecker_metrics
from vrag_kit.claims.ragchecker_json import complete_ragchecker_json as complete_ragchecker_json
from vrag_kit.claims.ragchecker_json import read_ragchecker_json as read_ragchecker_json
from vrag_kit.claims.verdicts import AnswerText as AnswerText
from vrag_kit.claims.verdicts import ClaimChecker as ClaimChecker
from vrag_kit.claims.verdicts import ClaimExtractor as ClaimExtractor
from vrag_kit.claims.verdicts import ClaimVerdicts as ClaimVerdicts
from vrag_kit.claims.verdicts import EntailmentLabel as EntailmentLabel
from vrag_kit.claims.verdicts import EntailmentRequest as EntailmentRequest
from vrag_kit.claims.verdicts import EvidenceItem as EvidenceItem
from vrag_kit.claims.verdicts import verdict_table as verdict_table
