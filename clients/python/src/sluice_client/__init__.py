"""Reads whole sets of rows from a sluice server over HTTP, and proves that they are whole.

    import sluice_client as sluice

    for row in sluice.rows("http://127.0.0.1:3000/items?category=Ideal"):
        print(row["id"], row["price"])

    frame = sluice.rows("http://127.0.0.1:3000/items", parallel=4).to_polars()
    sluice.mirror("http://127.0.0.1:3000/items", "items.sqlite")

A set that ends without an error is whole. Cut connections go on behind the last proved row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any

__version__ = "0.4.0"

from ._changes import Change, Changes, changes_since
from ._edition import Edition
from ._errors import Gone, Interrupted, Refused, SluiceError
from ._export import download_export, download_to, url_of_export
from ._head import EditionHead
from ._mirror import mirror as _mirror
from ._proof import Place
from ._retry import Options
from ._rows import Rows

__all__ = [
    "Change",
    "Changes",
    "Edition",
    "EditionHead",
    "Gone",
    "Interrupted",
    "Place",
    "Refused",
    "Rows",
    "SluiceError",
    "changes",
    "download",
    "edition",
    "export",
    "mirror",
    "rows",
]


def rows(
    url: str,
    *,
    parallel: int = 1,
    parse_float: Callable[[str], Any] | None = None,
    key: str | None = None,
    compression: str = "gzip",
    timeout: float = 60.0,
    retry_for: float = 300.0,
) -> Rows:
    """The rows of a resource: an iterator of dicts, in the order of the URL's `sort`.

    `url`: that of a resource or of its stream, with filters, `fields`, `sort` and all else that a stream takes, and
    `columns` and `schema` for tables. A parameter that cannot be met raises ValueError, or Refused by the server.
    `parallel`: how many connections read parts of the set at the same time. The order of the rows is then that of their
    arrival. `parse_float`: what reads numbers with a fraction, such as `decimal.Decimal`, which keeps all digits of a
    Decimal128; the default is `float`. `key`: an API key. `compression`: of the transfer, `gzip` or `identity`.
    `timeout`: seconds without data after which a connection is closed. `retry_for`: seconds without another proved row
    after which the iteration raises Interrupted.
    """
    return Rows(url, Options(key, compression, timeout, retry_for), parallel, parse_float)


def changes(
    url: str,
    since: str | None = None,
    *,
    follow: bool = False,
    key: str | None = None,
    compression: str = "gzip",
    timeout: float = 60.0,
    retry_for: float = 300.0,
) -> Iterator[Changes]:
    """What changed in a resource since a cursor, in batches, each with the cursor behind it.

    `url` may also be that of the changes of several resources (`/changes?resources=orders,customers`): each change
    then has its `resource`. Ends as soon as it is up to date, or goes on for ever with `follow`. Without `since` it
    begins now: its first batch is empty and has the first cursor. Raises Gone when the server no longer has these
    changes: then read the whole set again.
    """
    return changes_since(url, since, Options(key, compression, timeout, retry_for), follow)


def edition(
    url: str,
    *,
    parse_float: Callable[[str], Any] | None = None,
    key: str | None = None,
    timeout: float = 60.0,
    retry_for: float = 300.0,
) -> Edition:
    """An edition of a resource: all its rows at one time, in files that never change, which any cache may serve.

    `url`: `/items/edition` of a server, or `edition.json` of a folder or a bucket; with a name behind it, that edition.
    The head is read at once. `rows()`, `lines()`, `to_arrow()`, `to_polars()`, `to_pandas()` and `download(path)` end
    without an error only when they have the whole edition: each chunk is proved by its SHA-256, all of them by the
    edition's name. Tables of an edition with Parquet are read from that, whose files have the length that the index
    says. `parse_float`, `key`, `timeout` and `retry_for`: as for `rows`.
    """
    return Edition(url, Options(key, "identity", timeout, retry_for), parse_float)


def export(
    url: str,
    *,
    format: str | None = None,
    to: str | PathLike[str] | None = None,
    key: str | None = None,
    timeout: float = 60.0,
    retry_for: float = 300.0,
) -> str:
    """Orders a set as a file, waits until the server has written it, and returns the URL of the file.

    `url`: as for `rows`, without a limit. `format`: `parquet`, `arrow`, `ndjson`, `csv` or `json`; without it that of
    the URL, or that of the extension of `to`, or else `parquet`. `to`: a path. The file is then downloaded, which goes
    on where a connection is cut, and gets its name when its length and SHA-256 are proved; the path is returned. So a
    key is no wall for readers of files, such as `polars.scan_parquet`. `key`: an API key; where the file lies in a
    bucket, the URL is then a link that needs no key, for the server's EXPORT_LINK_TTL. The server keeps the file for
    its EXPORT_TTL, a day by default. Raises Refused when the export fails. A large set may take any time. `retry_for`:
    how long the server may be away meanwhile, in seconds.
    """
    options = Options(key, "gzip", timeout, retry_for)
    return url_of_export(url, format, options) if to is None else download_export(url, format, to, options)


def download(
    url: str,
    path: str | PathLike[str],
    *,
    key: str | None = None,
    timeout: float = 60.0,
    retry_for: float = 300.0,
) -> None:
    """Writes the file of an export to `path`, once the server has it. `url`: that of the export or of its file.

    `path` appears when the SHA-256 is that of the export. A connection that is cut goes on where it was. Where the file
    lies in a bucket, that gets no key, and a link that ends on the way is asked for anew.
    """
    download_to(url, path, Options(key, "identity", timeout, retry_for))


def mirror(
    url: str,
    path: str | PathLike[str],
    *,
    follow: bool = False,
    restart: bool = False,
    key: str | None = None,
    compression: str = "gzip",
    timeout: float = 60.0,
    retry_for: float = 300.0,
) -> Place:
    """Makes or updates a copy of a resource: a table of the SQLite file `path`, named as the resource.

    The table has the columns `id`, `row` (the row as JSON) and one for each field. A copy that exists gets only what
    has changed. When the server no longer has the changes, it gets what differs from the newest edition, if there is
    one. `url` may be that of an edition, which then begins the copy. Kill it anywhere and run it again. With `follow`
    it goes on for ever. `restart` replaces the table, whatever it is a copy of. `sluice pull --into` keeps the same
    tables.
    """
    return _mirror(url, path, Options(key, compression, timeout, retry_for), follow, restart)
