"""Event displays: charge, truth and prediction of the three planes."""
