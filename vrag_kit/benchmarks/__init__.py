"""Benchmarks: questions, documents and labels, read from the files their authors publish.

One module a data set; what they share is in `images`, `articles`, `knowledge` (a text
for each entity) and `other_corpus` (the same questions over other images).
"""

from vrag_kit.benchmarks.articles import Article, chunk_article, parse_article, read_articles
from vrag_kit.benchmarks.chart_mrag import load_chart_mrag
from vrag_kit.benchmarks.crag_mm import load_crag_mm
from vrag_kit.benchmarks.crag_mm_index import read_image_index, read_web_index
from vrag_kit.benchmarks.gold_evidence import with_gold_evidence
from vrag_kit.benchmarks.ids import original_id, safe_id
from vrag_kit.benchmarks.images import ImageFile, decode
from vrag_kit.benchmarks.knowledge import (
    Page,
    knowledge_base,
    load_pages,
    match_pages,
    match_table,
    read_species,
)
from vrag_kit.benchmarks.modality import documents_of
from vrag_kit.benchmarks.mrag_bench import load_mrag_bench
from vrag_kit.benchmarks.mrag_bench_classes import example_pools, read_labels
from vrag_kit.benchmarks.mrag_bench_texts import load_mrag_texts
from vrag_kit.benchmarks.other_corpus import load_other_corpus
from vrag_kit.benchmarks.page_benchmark import load_page_benchmark
from vrag_kit.benchmarks.suite import load_suite
from vrag_kit.benchmarks.visual_rag import load_visual_rag
from vrag_kit.benchmarks.webqa import captions_only, load_webqa
from vrag_kit.benchmarks.webqa_images import TsvImage

__all__ = [
    "Article",
    "ImageFile",
    "Page",
    "TsvImage",
    "captions_only",
    "chunk_article",
    "decode",
    "documents_of",
    "example_pools",
    "knowledge_base",
    "load_chart_mrag",
    "load_crag_mm",
    "load_mrag_bench",
    "load_mrag_texts",
    "load_other_corpus",
    "load_page_benchmark",
    "load_pages",
    "load_suite",
    "load_visual_rag",
    "load_webqa",
    "match_pages",
    "match_table",
    "original_id",
    "parse_article",
    "read_articles",
    "read_image_index",
    "read_labels",
    "read_species",
    "read_web_index",
    "safe_id",
    "with_gold_evidence",
]
