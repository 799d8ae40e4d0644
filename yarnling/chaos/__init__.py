"""Chaos: faults at a cluster of real processes, on a schedule or from a seed, and a verdict on what it kept to.

plan.py, grammar.py     what is to be done, and how a file says it        schedule.py, swarm.py     pure: what and when
faults.py, network.py   how it is done to a cluster                       workload.py               what runs meanwhile
strike.py, drain.py     the phases of a run                               runner.py                 all of it, once
history.py, checks.py   pure: what happened, and what must hold of it     verdict.py                pure: does it hold
"""
