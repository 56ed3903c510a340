"""A Jupyter-first research kit for visual retrieval-augmented generation."""
