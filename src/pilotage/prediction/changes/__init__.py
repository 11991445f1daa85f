"""What to change about a program, each change priced by predicting the changed program."""
