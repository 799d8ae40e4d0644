"""The capacity scheduler: pure code, called by the RM's core; it reports through `rm.scheduler.model.notices`."""
