"""What to change about a program: each suggestion comes with a prediction of the changed program."""
