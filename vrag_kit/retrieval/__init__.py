"""Retrieval: encode, store, search, and measure."""

from vrag_kit.retrieval.compare import (
    ORACLE,
    RANDOM_BASELINE,
    score_runs,
    search_all,
    search_one,
    write_runs,
)
from vrag_kit.retrieval.embedding_cache import embed_documents
from vrag_kit.retrieval.encoders.loading import load_encoder
from vrag_kit.retrieval.entity_hit_rate import best_threshold, threshold_curve
from vrag_kit.retrieval.hybrid import reciprocal_rank_fusion, tfidf_run
from vrag_kit.retrieval.metrics import METRICS, evaluate, mean_metrics, oracle_run
from vrag_kit.retrieval.runs import make_run, read_qrels, read_run, write_qrels, write_run
from vrag_kit.retrieval.services import (
    SearchService,
    annotated_region,
    cached_service,
    image_service,
    text_service,
    with_regions,
)
