"""What if: a workload in virtual time under a configuration, and the comparison of two configurations."""
