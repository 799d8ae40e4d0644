"""Hadoop's own verbs, with the options, output and exit statuses of `yarn`: a module for each verb."""
