"""`python -m yarnling` is the command `yarnling`."""

from yarnling.cli import main

if __name__ == "__main__":
    main()
