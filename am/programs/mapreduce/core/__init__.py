"""The pure core of the MapReduce ApplicationMaster: which tasks wait, run and are done."""
