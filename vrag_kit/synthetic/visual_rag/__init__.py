"""The Field Guide: the synthetic edition of Visual-RAG."""
