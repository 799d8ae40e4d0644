"""The vocabulary of YARN: resources, ids, records, states, errors, settings. Pure code."""
