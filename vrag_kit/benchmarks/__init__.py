"""Benchmarks: questions, documents and relevance labels, read from the files their authors publish."""

from vrag_kit.benchmarks.articles import Article, chunk_article, parse_article, read_articles
from vrag_kit.benchmarks.data_folder import DataFolder, find_data
from vrag_kit.benchmarks.fetching import Fetched, fetch_visual_rag
from vrag_kit.benchmarks.health import check_visual_rag
from vrag_kit.benchmarks.images import ImageFile, decode, find_damaged
from vrag_kit.benchmarks.knowledge import Page, knowledge_base, load_pages, match_pages, match_table, read_species
from vrag_kit.benchmarks.other_corpus import load_other_corpus
from vrag_kit.benchmarks.statistics import clip_length, distribution, organism_category, query_table, question_kind, statistics
from vrag_kit.benchmarks.versions import changes_summary, image_changes, label_changes
from vrag_kit.benchmarks.visual_rag import load_visual_rag
from vrag_kit.benchmarks.webqa import TsvImage, captions_only, load_webqa

__all__ = ["Article", "DataFolder", "Fetched", "ImageFile", "Page", "TsvImage", "captions_only", "changes_summary", "check_visual_rag", "chunk_article", "clip_length",
           "decode", "distribution", "fetch_visual_rag", "find_damaged", "find_data", "image_changes", "knowledge_base", "label_changes", "load_other_corpus",
           "load_pages", "load_visual_rag", "load_webqa", "match_pages", "match_table", "organism_category",
           "parse_article", "query_table", "question_kind", "read_articles", "read_species", "statistics"]
