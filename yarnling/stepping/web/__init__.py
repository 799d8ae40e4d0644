"""The page of stepping, for a browser on this machine."""
