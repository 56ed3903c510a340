"""The drawn edition of CRAG-MM: pictures as from smart glasses, and what is asked about them."""
