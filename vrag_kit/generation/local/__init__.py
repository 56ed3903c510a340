"""Models that run here, through transformers."""
