"""Entry point of `python -m vrag_kit.runner`, which is the same as `vrag`."""

from vrag_kit.runner.cli import main

if __name__ == "__main__":
    main()
