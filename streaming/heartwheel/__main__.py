"""Run the command line as `python -m heartwheel`."""

from heartwheel.front.cli import main

if __name__ == "__main__":
    main()
