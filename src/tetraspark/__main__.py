"""`python -m tetraspark`: the command, of the Python that runs this."""

from tetraspark.cli.main import run

if __name__ == "__main__":
    run()
