"""Fetches the files that containers ask for into the node's caches, and unpacks archives without trusting them."""
