"""The invented species and how they are drawn."""
