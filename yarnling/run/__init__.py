"""A recorded run: six records, their writers and one reader (docs/design/recorded-run.md)."""
