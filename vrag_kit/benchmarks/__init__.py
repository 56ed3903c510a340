"""Benchmarks: questions, documents and relevance labels, read from the files their authors publish."""

from vrag_kit.benchmarks.images import ImageFile, decode, find_damaged
from vrag_kit.benchmarks.statistics import clip_length, distribution, organism_category, query_table, question_kind, statistics
from vrag_kit.benchmarks.visual_rag import check_visual_rag, load_visual_rag

__all__ = ["ImageFile", "check_visual_rag", "clip_length", "decode", "distribution", "find_damaged", "load_visual_rag",
           "organism_category", "query_table", "question_kind", "statistics"]
