"""Loaders for benchmarks: queries, corpora and labels, read from the authors' published files.

Each data set has its own module. They share `images`, `articles`, `knowledge_base` (article
chunks per species) and `other_corpus` (the same queries over another image corpus).
"""

from vrag_kit.benchmarks.articles import Article, chunk_article, parse_article, read_articles
from vrag_kit.benchmarks.chart_mrag import load_chart_mrag
from vrag_kit.benchmarks.crag_mm import load_crag_mm
from vrag_kit.benchmarks.crag_mm_index import (
    entity_names,
    page_chunks,
    read_image_index,
    read_web_index,
)
from vrag_kit.benchmarks.gold_evidence import with_gold_evidence
from vrag_kit.benchmarks.ids import decode_id, encode_id
from vrag_kit.benchmarks.images import ImageFile, decode
from vrag_kit.benchmarks.knowledge_base import (
    Page,
    knowledge_base,
    load_species_pages,
    match_counts,
    match_pages,
    read_species,
)
from vrag_kit.benchmarks.modality import restrict_to_modality
from vrag_kit.benchmarks.mrag_bench import load_mrag_bench
from vrag_kit.benchmarks.mrag_bench_classes import example_pools, read_class_labels
from vrag_kit.benchmarks.mrag_bench_texts import load_mrag_texts
from vrag_kit.benchmarks.other_corpus import load_inat_corpus
from vrag_kit.benchmarks.page_benchmark import load_page_benchmark
from vrag_kit.benchmarks.suite import load_collection
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
    "decode_id",
    "encode_id",
    "entity_names",
    "example_pools",
    "knowledge_base",
    "load_chart_mrag",
    "load_collection",
    "load_crag_mm",
    "load_inat_corpus",
    "load_mrag_bench",
    "load_mrag_texts",
    "load_page_benchmark",
    "load_species_pages",
    "load_visual_rag",
    "load_webqa",
    "match_counts",
    "match_pages",
    "page_chunks",
    "parse_article",
    "read_articles",
    "read_class_labels",
    "read_image_index",
    "read_species",
    "read_web_index",
    "restrict_to_modality",
    "with_gold_evidence",
]
