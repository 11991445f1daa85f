"""The LArTPC segmentation program of the same name, rebuilt on Pilotage."""
