"""Retrieval: encode, store, search, and measure."""

from vrag_kit.retrieval.bm25 import bm25_run
from vrag_kit.retrieval.by_modality import BM25, FUSED, score_each, search_each
from vrag_kit.retrieval.comparison import (
    PERFECT,
    RANDOM,
    score_runs,
    search_all,
    search_one,
    write_runs,
)
from vrag_kit.retrieval.converted import converted_service
from vrag_kit.retrieval.embedding import embed_documents
from vrag_kit.retrieval.embeddings import Embeddings
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.finding import OPTIONS
from vrag_kit.retrieval.fusion import fuse
from vrag_kit.retrieval.loading import load_encoder
from vrag_kit.retrieval.metrics import CUTOFFS, METRICS, evaluate, mean_metrics
from vrag_kit.retrieval.reference import perfect_run, random_reference
from vrag_kit.retrieval.regions import marked_region, with_regions
from vrag_kit.retrieval.replies import cached
from vrag_kit.retrieval.run import make_run, read_qrels, read_run, write_qrels, write_run
from vrag_kit.retrieval.search import FlatRetriever
from vrag_kit.retrieval.search_recall import entity_coverage, entity_recall, search_recall
from vrag_kit.retrieval.services import (
    AroundService,
    SearchService,
    check_corpus,
    image_service,
    text_service,
)
from vrag_kit.retrieval.tfidf import word_run
from vrag_kit.retrieval.thresholds import best_threshold, threshold_curve

__all__ = [
    "BM25",
    "CUTOFFS",
    "FUSED",
    "METRICS",
    "OPTIONS",
    "PERFECT",
    "RANDOM",
    "AroundService",
    "Embeddings",
    "Encoder",
    "FlatRetriever",
    "SearchService",
    "best_threshold",
    "bm25_run",
    "cached",
    "check_corpus",
    "converted_service",
    "embed_documents",
    "entity_coverage",
    "entity_recall",
    "evaluate",
    "fuse",
    "image_service",
    "load_encoder",
    "make_run",
    "marked_region",
    "mean_metrics",
    "perfect_run",
    "random_reference",
    "read_qrels",
    "read_run",
    "score_each",
    "score_runs",
    "search_all",
    "search_each",
    "search_one",
    "search_recall",
    "text_service",
    "threshold_curve",
    "with_regions",
    "word_run",
    "write_qrels",
    "write_run",
    "write_runs",
]
