"""How does `python -m tidegate` start?"""


def main() -> None:
    """Run the command line; exits with the codes of the command reference."""
    from tidegate.cli import main as command_line  # noqa: PLC0415 - importing tidegate stays free

    command_line()


if __name__ == "__main__":
    main()
