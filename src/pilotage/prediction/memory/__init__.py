"""How much memory a program needs: what lives when, and what a device adds to it."""
