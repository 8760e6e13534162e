"""The URLs of a resource."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

_PAGES_OF = ("stream", "changes", "partitions")


def url_of(address: str, kind: str) -> str:
    """The URL of the stream, changes or partitions of a resource, whichever of its URLs is given."""
    parts = urlsplit(address)
    segments = [segment for segment in parts.path.split("/") if segment]
    if not segments:
        raise ValueError(f"{address!r} is not the URL of a resource, such as http://127.0.0.1:3000/items")
    if len(segments) > 1 and segments[-1] in _PAGES_OF:
        segments.pop()
    return urlunsplit(parts._replace(path="/".join(["", *segments, kind]), fragment=""))


_EDITION = re.compile(r"(?P<base>.*/)edition(?P<json>\.json)?/?")


def edition_of(url: str) -> tuple[str | None, str | None]:
    """The URL of the newest edition of a resource, if its URL selects no rows, and that of what a copy of it follows.

    The latter is None where the URL is not that of an edition. A folder of editions has no stream.
    """
    parts = urlsplit(url)
    found = _EDITION.fullmatch(parts.path)
    if found is not None and (found["base"] != "/" or found["json"]):
        is_static = found["json"] is not None
        return url, url if is_static else urlunsplit(parts._replace(path=f"{found['base']}stream", fragment=""))
    if parts.query:
        return None, None
    return url_of(url, "edition"), None


def with_query(url: str, changes: Mapping[str, str | None]) -> str:
    """The URL with these parameters. None takes a parameter away."""
    query = [(name, value) for name, value in _query(url) if name not in changes]
    query += [(name, value) for name, value in changes.items() if value is not None]
    return urlunsplit(urlsplit(url)._replace(query=urlencode(query)))


def asking(url: str, needs: Mapping[str, str]) -> str:
    """The URL with these parameters, which the client needs. Raises ValueError where it has others of these names.

    All other parameters go to the server, which refuses those that do not fit.
    """
    for name, value in needs.items():
        given = parameter(url, name)
        if given is not None and given != value:
            raise ValueError(f"the URL has {name}={given}, but this reads {name}={value}")
    return with_query(url, needs)


def refuse(url: str, names: Iterable[str], why: str) -> None:
    """Raises ValueError where the URL has one of these parameters."""
    for name in names:
        if parameter(url, name) is not None:
            raise ValueError(f"{why}: leave {name} out of the URL")


def rest_of(url: str, cursor: str | None, rows: int) -> str | None:
    """The URL of what follows a cursor in a stream that has given `rows` rows. None when its limit is reached."""
    if cursor is None:
        return url
    limit = parameter(url, "limit")
    left = None if limit is None else int(limit) - rows
    if left is not None and left <= 0:
        return None
    return with_query(url, {"cursor": cursor, "after": None, "limit": None if left is None else str(left)})


def parameter(url: str, name: str) -> str | None:
    return next((value for key, value in _query(url) if key == name), None)


def resource_of(url: str) -> str:
    """The name of the resource of a stream."""
    return unquote(urlsplit(url).path.split("/")[-2])


def _query(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query, keep_blank_values=True)
