"""LArTPC-like events from random numbers: cosmic muons, one neutrino interaction, noise, three wire planes."""
