"""Fetch images from archives with resume, and check for missing, damaged or changed data."""

from vrag_kit.fetching.extract import fetch_images
from vrag_kit.fetching.sources import fetch_visual_rag
from vrag_kit.fetching.validate import find_problems
