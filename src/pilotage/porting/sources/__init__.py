"""Scripts as text and as trees, and edits of their text that keep comments and layout."""
