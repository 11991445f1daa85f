"""One process, several cards: local replicas side by side."""
