"""Make a benchmark of one's own: species, questions, a coarse filter, annotation by people, agreement, the final rule (Visual-RAG, section 4 and appendix C)."""
