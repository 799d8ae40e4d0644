"""Space-time diagrams and plots of a run, from event logs, recordings of `yarnling watch` and traces of simulations."""
