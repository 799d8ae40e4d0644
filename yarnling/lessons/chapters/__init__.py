"""The chapters, one module each."""
