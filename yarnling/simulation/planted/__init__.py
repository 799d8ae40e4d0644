"""Planted bugs: safeguards of the product, each of which can be broken for one run to see whether a run notices."""
