"""Static analysis of scripts: finds models, loops, optimizers and loaders without running the code."""
