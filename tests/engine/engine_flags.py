"""Print the options of the engine's own parser, in JSON: of each argument, all of its spellings.

Run in an interpreter with the engine.
"""

import argparse
import json

from sglang.srt.server_args import ServerArgs


def main() -> None:
    """Print them, and the prefix by which the parser reads arguments from a file, if any."""
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    options = [list(action.option_strings) for action in parser._actions]
    found = {"options": options, "file_prefix": parser.fromfile_prefix_chars}
    print(json.dumps(found | {"abbreviates": parser.allow_abbrev}))


if __name__ == "__main__":
    main()
