"""`python -m vrag_kit.runner` is `vrag`."""

from vrag_kit.runner.cli import main

if __name__ == "__main__":
    main()
