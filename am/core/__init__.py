"""The pure cores of an ApplicationMaster: its requests, its application, and its check after an RM restart."""
