"""`python -m busenv.experiments.cli` is the `busenv` command."""

from busenv.experiments.cli import main

if __name__ == "__main__":
    main()
