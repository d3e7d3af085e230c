import sys

from tests.simulation.chaos.command import main

if __name__ == "__main__":
    sys.exit(main())
