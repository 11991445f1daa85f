"""How documents become the site."""
