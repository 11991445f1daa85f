"""The 2D network in TensorFlow: ``framework=tensorflow``, with the files, schedule and loop of the torch trainer."""
