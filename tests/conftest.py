"""What holds for all tests: how long a property may look for a counter-example, and where from.

By default the examples are the same in every run, so that a change is not blamed for what chance found. To look for
what is not known yet:  scripts/test --hypothesis-profile=explore  (a failure prints how to repeat it).
"""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("steady")
