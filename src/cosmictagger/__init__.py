"""The LArTPC segmentation program of the same name, built anew on Pilotage."""
