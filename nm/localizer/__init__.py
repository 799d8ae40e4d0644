"""Fetches the files that containers request into the node's caches, and unpacks archives without trusting them."""
