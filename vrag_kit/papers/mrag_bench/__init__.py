"""MRAG-Bench (Hu et al.): its wordings, settings and choice reader."""
