"""The processes that train one network together."""
