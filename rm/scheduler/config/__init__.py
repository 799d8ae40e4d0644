"""The scheduler's configuration: what capacity-scheduler.xml says, checked and typed."""
