"""Retrieval: encode, store, search, and measure."""

from vrag_kit.retrieval.again import search_again
from vrag_kit.retrieval.comparison import PERFECT, RANDOM, score_runs, search_all, write_runs
from vrag_kit.retrieval.embeddings import Embeddings, embed_documents
from vrag_kit.retrieval.encoders import Encoder
from vrag_kit.retrieval.finding import OPTIONS
from vrag_kit.retrieval.loading import load_encoder
from vrag_kit.retrieval.metrics import CUTOFFS, METRICS, evaluate, mean_metrics
from vrag_kit.retrieval.reference import perfect_run, random_reference
from vrag_kit.retrieval.run import make_run, read_qrels, read_run, write_qrels, write_run
from vrag_kit.retrieval.search import FlatRetriever
from vrag_kit.retrieval.services import SearchService, image_service, text_service
from vrag_kit.retrieval.tfidf import word_run

__all__ = [
    "CUTOFFS",
    "METRICS",
    "OPTIONS",
    "PERFECT",
    "RANDOM",
    "Embeddings",
    "Encoder",
    "FlatRetriever",
    "SearchService",
    "embed_documents",
    "evaluate",
    "image_service",
    "load_encoder",
    "make_run",
    "mean_metrics",
    "perfect_run",
    "random_reference",
    "read_qrels",
    "read_run",
    "score_runs",
    "search_again",
    "search_all",
    "text_service",
    "word_run",
    "write_qrels",
    "write_run",
    "write_runs",
]
