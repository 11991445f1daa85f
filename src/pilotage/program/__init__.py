"""The values that describe a captured computation: program, schedule, layout, structure, signature."""
