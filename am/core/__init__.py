"""The pure cores of an ApplicationMaster: its resource requests, the rules of its application, and the reconciliation
that checks after an RM restart whether its containers still run.
"""
