"""Notices what the user changes on the host after the first call, and takes it over or says that it does not."""
