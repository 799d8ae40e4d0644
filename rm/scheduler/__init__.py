"""The capacity scheduler: pure, called by rm.core.resource_manager, answers through `rm.scheduler.model.notices`."""
