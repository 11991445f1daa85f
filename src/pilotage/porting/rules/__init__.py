"""The rules, one file for each, in folders by purpose; `registry.py` lists them."""
