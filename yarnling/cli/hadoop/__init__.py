"""Hadoop's own verbs, one module for each, with the options, output and exit statuses of the `yarn` command."""
