"""Local models, run through transformers."""
