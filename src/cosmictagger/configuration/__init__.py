"""The configuration of a run: structured values, presets, recipes and checks."""
