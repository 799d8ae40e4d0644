"""The demonstration that `scripts/demo` runs. It belongs to the checkout; the wheel does not contain it."""
