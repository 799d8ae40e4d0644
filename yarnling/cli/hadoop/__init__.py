"""Hadoop's own verbs, typed as `yarn` takes them and answered as it answers: a module for each family of verbs."""
