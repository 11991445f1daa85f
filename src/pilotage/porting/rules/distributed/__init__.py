"""Rules for scripts that train in several processes or on several GPUs: a wrapped model needs neither."""
