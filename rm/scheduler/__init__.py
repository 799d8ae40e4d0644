"""The capacity scheduler: pure, called by rm.core, answers through `rm.scheduler.notices`."""
