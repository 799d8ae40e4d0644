"""The vocabulary of YARN: resources, ids, records, lifecycles, errors, settings. Pure, no dependencies."""
