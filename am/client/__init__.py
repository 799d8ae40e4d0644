"""The clients of an ApplicationMaster: AMRMClient, NMClient, and how applications are submitted and launched."""
