"""Loaders for benchmarks: queries, corpora and labels, read from the authors' published files.

Each data set has its own module in `datasets`. They share `images`, `articles`, `knowledge_base`
(article chunks per species), `rows` (row models, and what is wrong with data) and `sources`.
"""

from vrag_kit.benchmarks.articles import Article, chunk_article, parse_article, read_articles
from vrag_kit.benchmarks.datasets.chart_mrag import load_chart_mrag
from vrag_kit.benchmarks.datasets.collection import load_collection
from vrag_kit.benchmarks.datasets.crag_mm import load_crag_mm
from vrag_kit.benchmarks.datasets.crag_mm_index import (
    entity_names,
    page_chunks,
    read_image_index,
    read_web_index,
)
from vrag_kit.benchmarks.datasets.inat_images import load_inat_corpus
from vrag_kit.benchmarks.datasets.mrag_bench import load_mrag_bench
from vrag_kit.benchmarks.datasets.mrag_bench_corpora import (
    example_pools,
    load_mrag_texts,
    read_class_labels,
)
from vrag_kit.benchmarks.datasets.pages import load_page_benchmark
from vrag_kit.benchmarks.datasets.visual_rag import load_visual_rag
from vrag_kit.benchmarks.datasets.webqa import load_webqa
from vrag_kit.benchmarks.datasets.webqa_images import TsvImage
from vrag_kit.benchmarks.images import ImageFile, decode
from vrag_kit.benchmarks.knowledge_base import (
    Page,
    knowledge_base,
    load_species_pages,
    match_counts,
    match_pages,
    read_species,
)
from vrag_kit.benchmarks.transforms import (
    captions_only,
    decode_id,
    encode_id,
    restrict_to_modality,
    with_gold_evidence,
)

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
