"""An answer's atomic claims: extraction, checking, verdicts, metrics and human labels."""

from vrag_kit.claims.by_modality import claim_means_by_modality, verdict_table
from vrag_kit.claims.checking import check_answers, text_only, with_caption
from vrag_kit.claims.human_labels import (
    ClaimPair,
    add_human_verdicts,
    pairs_to_label,
    read_annotator_labels,
    read_claim_labels,
    write_claim_labels,
)
from vrag_kit.claims.label_agreement import (
    corrected_claim_means,
    verdict_agreement,
    verdict_confusion_matrix,
    verdict_pairs,
)
from vrag_kit.claims.label_sources import (
    annotator_agreement,
    compare_label_sources,
    labels_from_verdicts,
)
from vrag_kit.claims.means import claim_means, claim_values, metric_rows
from vrag_kit.claims.metrics import evidence_metrics, ragchecker_metrics
from vrag_kit.claims.model_checker import forbid_self_check, load_checker, load_extractor
from vrag_kit.claims.ragchecker_json import (
    RagCheckerFile,
    add_ragchecker_metrics,
    complete_ragchecker_json,
    count_unchecked,
    ragchecker_means,
    read_ragchecker_json,
    to_ragchecker,
    write_ragchecker_json,
)
from vrag_kit.claims.rule_checker import RuleChecker, RuleExtractor, SentenceGrammar
from vrag_kit.claims.verdicts import (
    AnswerText,
    ClaimChecker,
    ClaimExtraction,
    ClaimExtractor,
    ClaimVerdicts,
    EntailmentLabel,
    EntailmentRequest,
    EvidenceItem,
    answer_document,
    entailment_label,
    verdict,
)

__all__ = [
    "AnswerText",
    "ClaimChecker",
    "ClaimExtraction",
    "ClaimExtractor",
    "ClaimPair",
    "ClaimVerdicts",
    "EntailmentLabel",
    "EntailmentRequest",
    "EvidenceItem",
    "RagCheckerFile",
    "RuleChecker",
    "RuleExtractor",
    "SentenceGrammar",
    "add_human_verdicts",
    "add_ragchecker_metrics",
    "annotator_agreement",
    "answer_document",
    "check_answers",
    "claim_means",
    "claim_means_by_modality",
    "claim_values",
    "compare_label_sources",
    "complete_ragchecker_json",
    "corrected_claim_means",
    "count_unchecked",
    "entailment_label",
    "evidence_metrics",
    "forbid_self_check",
    "labels_from_verdicts",
    "load_checker",
    "load_extractor",
    "metric_rows",
    "pairs_to_label",
    "ragchecker_means",
    "ragchecker_metrics",
    "read_annotator_labels",
    "read_claim_labels",
    "read_ragchecker_json",
    "text_only",
    "to_ragchecker",
    "verdict",
    "verdict_agreement",
    "verdict_confusion_matrix",
    "verdict_pairs",
    "verdict_table",
    "with_caption",
    "write_claim_labels",
    "write_ragchecker_json",
]
