"""How the Field Guide's retrievers and answerers were trained."""
