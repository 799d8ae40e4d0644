"""The clients of an ApplicationMaster (AMRMClient, NMClient), and the submission and launch of applications."""
