"""Experimental extensions."""
