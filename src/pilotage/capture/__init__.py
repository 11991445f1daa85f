"""From a module, its loss and its optimizer to a program."""
