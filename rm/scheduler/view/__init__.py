"""Read-only views of the scheduler: explanations, reasons and invariants."""
