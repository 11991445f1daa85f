"""The rules, one file for each, in folders by what they are for; `registry.py` lists them."""
