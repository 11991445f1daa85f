"""What a script does: its models, loops, optimizers and loaders, found in its tree without running it."""
