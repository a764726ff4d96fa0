"""Run the command line as `python -m heartwheel`."""

from heartwheel.cli import main

if __name__ == "__main__":
    main()
