"""What the user decides: structured values, presets, recipes, and the checks that refuse what cannot be."""
