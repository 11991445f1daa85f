"""Checks a program once against eager PyTorch: did the model arrive on the device unchanged?"""
