"""Graded labs: a learner's own code or answer, judged by runs in virtual time."""
