"""The core of the MapReduce ApplicationMaster: pure; which tasks wait, run and are done."""
