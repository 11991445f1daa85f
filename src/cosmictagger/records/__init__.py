"""The output of a run: logs, tables, checkpoints, profiles and the placement report."""
