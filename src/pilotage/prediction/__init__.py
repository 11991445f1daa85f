"""Whether a program fits a device and how fast it would run there, and the page that shows it."""
