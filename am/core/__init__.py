"""The core of an ApplicationMaster: pure; what it has asked for, and what it still has to."""
