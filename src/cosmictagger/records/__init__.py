"""What a run leaves behind: logs, tables, checkpoints, profiles and the account of where it ran."""
