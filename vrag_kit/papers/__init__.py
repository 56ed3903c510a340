"""One subpackage per paper: its prompts, rubric and published numbers as data, and its own code."""

from vrag_kit.papers.published import published, published_gains
