"""How code is read: scopes, names, what is read and written, and where values come from."""
