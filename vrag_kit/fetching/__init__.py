"""Fetching: images out of archives that resume, and what of a benchmark's data is
missing, damaged or changed.
"""

from vrag_kit.fetching.check_data import check_data
from vrag_kit.fetching.data_folder import DataFolder, find_data
from vrag_kit.fetching.fetching import Fetched, fetch_visual_rag
from vrag_kit.fetching.health import check_visual_rag
from vrag_kit.fetching.versions import changes_summary, image_changes, label_changes

__all__ = [
    "DataFolder",
    "Fetched",
    "changes_summary",
    "check_data",
    "check_visual_rag",
    "fetch_visual_rag",
    "find_data",
    "image_changes",
    "label_changes",
]
