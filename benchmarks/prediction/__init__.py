"""Measurements for `pilotage predict`: constants of a device, and predicted beside measured."""
