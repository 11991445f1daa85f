"""Reading and writing event files in larcv3's HDF5 layout."""
