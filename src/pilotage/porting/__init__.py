"""A plain PyTorch script becomes a PopTorch, PopDist, Gaudi or Pilotage script: read, analyse, plan edits, write."""
