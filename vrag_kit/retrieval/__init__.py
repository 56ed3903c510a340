"""Retrieval: encode, store, search, and measure."""

from vrag_kit.retrieval.bm25 import bm25_run
from vrag_kit.retrieval.by_modality import BM25, FUSED, score_by_modality, search_by_modality
from vrag_kit.retrieval.compare import (
    PERFECT,
    RANDOM,
    score_runs,
    search_all,
    search_one,
    write_runs,
)
from vrag_kit.retrieval.converted import chroma_service
from vrag_kit.retrieval.dense import FlatRetriever
from vrag_kit.retrieval.embedding import embed_documents
from vrag_kit.retrieval.embeddings import Embeddings
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.entity_recall import entity_coverage, entity_hit_rate, hit_rate
from vrag_kit.retrieval.finding import OPTIONS
from vrag_kit.retrieval.fusion import reciprocal_rank_fusion
from vrag_kit.retrieval.loading import load_encoder
from vrag_kit.retrieval.metrics import CUTOFFS, METRICS, evaluate, mean_metrics
from vrag_kit.retrieval.reference import oracle_run, random_baseline
from vrag_kit.retrieval.regions import annotated_region, with_regions
from vrag_kit.retrieval.replies import cached_service
from vrag_kit.retrieval.runs import make_run, read_qrels, read_run, write_qrels, write_run
from vrag_kit.retrieval.services import (
    SearchService,
    ServiceWrapper,
    check_corpus,
    image_service,
    text_service,
)
from vrag_kit.retrieval.tfidf import tfidf_run
from vrag_kit.retrieval.thresholds import best_threshold, threshold_curve

__all__ = [
    "BM25",
    "CUTOFFS",
    "FUSED",
    "METRICS",
    "OPTIONS",
    "PERFECT",
    "RANDOM",
    "Embeddings",
    "Encoder",
    "FlatRetriever",
    "SearchService",
    "ServiceWrapper",
    "annotated_region",
    "best_threshold",
    "bm25_run",
    "cached_service",
    "check_corpus",
    "chroma_service",
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
    "random_baseline",
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
