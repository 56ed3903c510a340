"""Loaders for benchmarks: queries, corpora and labels, read from the authors' published files.

Each data set has its own module in `datasets`. To add one, here or in a project of your own, write
a function `load_…` that returns a `Benchmark` (`vrag_kit.types`); `datasets.visual_rag` is an
example. In the order of use:

    rows.Row                 the model of a row: a pydantic model, one field a line
    sources.read_objects     JSON Lines; `sources.read_shard` for Parquet and Arrow
    rows.validate            checks a row; what is wrong goes to `rows.Problems`, which raises at
                             the first or collects
    Problems.is_new          refuses a second row of one id
    images.ImageFile         an image by its path; `image_cache` for images that lie in rows
    transforms               ids, groups of queries that share images, `hash_parts` for fingerprints

`vrag data check` knows the layouts in `fetching.validate`; a notebook's parameter, those in `open`.
"""

from vrag_kit.benchmarks.datasets.chart_mrag import load_chart_mrag
from vrag_kit.benchmarks.datasets.collection import load_collection
from vrag_kit.benchmarks.datasets.crag_mm import load_crag_mm
from vrag_kit.benchmarks.datasets.crag_mm_index import entity_names
from vrag_kit.benchmarks.datasets.mrag_bench import load_mrag_bench
from vrag_kit.benchmarks.datasets.mrag_bench_corpora import example_pools, load_mrag_texts
from vrag_kit.benchmarks.datasets.pages import load_page_benchmark
from vrag_kit.benchmarks.datasets.visual_rag import load_inat_corpus, load_visual_rag
from vrag_kit.benchmarks.datasets.webqa import load_webqa
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.knowledge_base import (
    knowledge_base,
    load_species_pages,
    match_counts,
    read_species,
)
from vrag_kit.benchmarks.transforms import captions_only, with_gold_evidence
