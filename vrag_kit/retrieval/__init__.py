"""Retrieval: encode, store, search, and measure."""

from vrag_kit.retrieval.compare import (
    ORACLE,
    RANDOM_BASELINE,
    score_runs,
    search_all,
    search_one,
    write_runs,
)
from vrag_kit.retrieval.dense import FlatRetriever
from vrag_kit.retrieval.embedding_cache import embed_documents
from vrag_kit.retrieval.encoders.loading import OPTIONS, load_encoder
from vrag_kit.retrieval.entity_hit_rate import (
    best_threshold,
    entity_coverage,
    entity_hit_rate,
    hit_rate,
    threshold_curve,
)
from vrag_kit.retrieval.hybrid import (
    FUSED,
    reciprocal_rank_fusion,
    score_by_modality,
    search_by_modality,
    tfidf_run,
)
from vrag_kit.retrieval.metrics import (
    CUTOFFS,
    METRICS,
    evaluate,
    mean_metrics,
    oracle_run,
)
from vrag_kit.retrieval.regions import annotated_region, with_regions
from vrag_kit.retrieval.runs import make_run, read_qrels, read_run, write_qrels, write_run
from vrag_kit.retrieval.services import (
    SearchService,
    cached_service,
    check_corpus,
    image_service,
    text_service,
)
from vrag_kit.retrieval.shards import Embeddings

__all__ = [
    "CUTOFFS",
    "FUSED",
    "METRICS",
    "OPTIONS",
    "ORACLE",
    "RANDOM_BASELINE",
    "Embeddings",
    "FlatRetriever",
    "SearchService",
    "annotated_region",
    "best_threshold",
    "cached_service",
    "check_corpus",
    "embed_documents",
    "entity_coverage",
    "entity_hit_rate",
    "evaluate",
    "hit_rate",
    "image_service",
    "load_encoder",
    "make_run",
    "mean_metrics",
    "oracle_run",
    "read_qrels",
    "read_run",
    "reciprocal_rank_fusion",
    "score_by_modality",
    "score_runs",
    "search_all",
    "search_by_modality",
    "search_one",
    "text_service",
    "tfidf_run",
    "threshold_curve",
    "with_regions",
    "write_qrels",
    "write_run",
    "write_runs",
]
