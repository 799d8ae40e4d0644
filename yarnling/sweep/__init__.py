"""Sweeps: many simulations with different seeds and inputs, spread over all cores or a Dask cluster."""
