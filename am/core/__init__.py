"""The cores of an ApplicationMaster: its requests, its application, and what still runs after an RM restart."""
