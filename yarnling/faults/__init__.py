"""Chaos tests: inject faults into a cluster of real processes, then check the guarantees that the cluster gives.

plan.py, plan_file.py     what a plan is, and its YAML         schedule.py    pure: which fault when, on which node
kinds.py, actions.py      the table of faults, and each one    target.py      what a cluster lets faults do to it
workload.py, notes.py     the applications that run            phases.py      inject, recover, drain
history.py, checks.py     pure: what happened, what must hold  verdict.py     pure: pass, fail or cannot tell
runner.py                 one run from start to verdict        cleanup.py     run directories and leftovers
"""
