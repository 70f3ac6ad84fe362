"""`python -m busenv` is the `busenv` command."""

from busenv.cli import main

if __name__ == "__main__":
    main()
