"""Data sets: the layout of each as published, its row models, and its loader."""
