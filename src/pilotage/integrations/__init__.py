"""Pilotage inside of other libraries; each module needs its library, which is imported only there."""
