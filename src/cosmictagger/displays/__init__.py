"""Images of events for people: charge, truth and prediction of the three planes."""
