"""Requests and replies of YARN's protocols and of yarnling's own, with one module for each protocol."""
