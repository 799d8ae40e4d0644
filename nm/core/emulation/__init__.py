"""Emulated containers: the rules that describe them, and the course of one of them."""
