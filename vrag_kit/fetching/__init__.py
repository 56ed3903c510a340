"""Fetch images from archives with resume, and check for missing, damaged or changed data."""

from vrag_kit.fetching.data_folder import find_data
from vrag_kit.fetching.fetching import fetch_images
from vrag_kit.fetching.health import check_visual_rag
from vrag_kit.fetching.visual_rag import fetch_visual_rag

__all__ = [
    "check_visual_rag",
    "fetch_images",
    "fetch_visual_rag",
    "find_data",
]
