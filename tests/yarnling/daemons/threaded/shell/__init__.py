"""Its daemon."""
