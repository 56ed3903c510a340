"""The pages for users: README.md and those beside notebooks, parameter files and the package."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "README.md",
    ROOT / "notebooks" / "README.md",
    ROOT / "params" / "README.md",
    ROOT / "vrag_kit" / "README.md",
)
README = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
"""All pages, in the order in which their Python runs."""
