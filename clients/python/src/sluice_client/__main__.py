"""`python -m sluice_client pull`: a whole set, proved, as a file or as a table of SQLite."""

from __future__ import annotations

import argparse
import sys
from os import replace
from os.path import splitext
from pathlib import Path

from . import __version__, export, mirror, rows
from ._errors import SluiceError, printable

_FILES = (".parquet", ".arrow", ".csv", ".json")
_SAYS = """\
Pulls a whole set from a sluice server, and proves that it is whole. A connection that is cut goes on where it was. The
extension of FILE says the format: .parquet, .arrow, .csv and .json are made by the server, as an export. Any other
file, and -o -, gets lines of JSON.
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns its exit code: 0 the set is whole and proved, 1 it is not. Wrong usage exits with 2."""
    options = _parser().parse_args(arguments)
    try:
        key = None if options.key_file is None else _key_in(options.key_file)
        if options.into is not None:
            place = mirror(options.url, options.into, follow=options.follow, restart=options.restart, key=key)
            print(f"{options.into} is up to date: {place.rows} lines of rows and removals", file=sys.stderr)
        elif splitext(options.output)[1].lower() in _FILES:
            export(options.url, to=options.output, key=key)
            print(f"wrote and proved {options.output}", file=sys.stderr)
        else:
            _write_lines(options.url, options.output, options.parallel, key)
    except (SluiceError, OSError, ValueError) as error:
        print(f"sluice_client: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0 if options.into is not None and options.follow else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sluice_client")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="pull")
    pull = commands.add_parser("pull", description=_SAYS)
    pull.add_argument("url", metavar="URL", help="the URL of a resource, with filters, sort and fields")
    place = pull.add_mutually_exclusive_group(required=True)
    place.add_argument("-o", "--output", metavar="FILE", help="the file, or - for standard output")
    place.add_argument("--into", metavar="FILE.sqlite", help="keeps a table of SQLite equal to the set")
    pull.add_argument("--key-file", metavar="FILE", help="a file whose first line is the API key")
    pull.add_argument("--parallel", type=int, default=1, metavar="N", help="connections for lines of JSON")
    pull.add_argument("--follow", action="store_true", help="with --into: goes on with the changes for ever")
    pull.add_argument("--restart", action="store_true", help="with --into: replaces the table")
    return parser


def _write_lines(url: str, output: str, parallel: int, key: str | None) -> None:
    lines = rows(url, parallel=parallel, key=key).lines()
    if output == "-":
        for line in lines:
            sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
        return
    part = f"{output}.part"
    count = 0
    with open(part, "wb") as file:
        for line in lines:
            file.write(line + b"\n")
            count += 1
    replace(part, output)
    print(f"wrote and proved {count} rows in {output}", file=sys.stderr)


def _key_in(path: str) -> str:
    key = Path(path).read_text(encoding="utf-8").partition("\n")[0].strip()
    if key == "":
        raise ValueError(f"the first line of the key file {path} is empty")
    return key


if __name__ == "__main__":
    sys.exit(main())
