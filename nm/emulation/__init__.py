"""Containers that are played instead of run: the table of what they do, and the course of one of them."""
