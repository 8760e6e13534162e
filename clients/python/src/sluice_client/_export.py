"""A set as a file that the server writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from os import PathLike, fspath
from os.path import splitext
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from ._download import ExportedFile, write_file
from ._errors import Interrupted, Refused
from ._http import Answer, Lead
from ._retry import Backoff, Options
from ._url import asking, parameter, resource_of, url_of

_JSON = "application/json"
# An id of an export goes into URLs.
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
_DEFAULT_FORM = "parquet"
_FORMS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".json": "json",
}
# The longest time that a request waits for the end of an export. Proxies cut what is silent for a minute.
_WAIT = 30
_EXPORT = re.compile(r"(?P<path>.*/exports/[^/]+?)(?:/file)?/?")
# Parameters whose values are numbers or booleans in JSON.
_LITERALS = ("min_price", "max_price", "safe", "excel")


def url_of_export(address: str, form: str | None, options: Options) -> str:
    """The URL of the file. See `export`."""
    backoff = Backoff(options)
    url, _ = _complete(address, form, options, backoff)
    return f"{url}/file" if options.key is None else _readable(f"{url}/file", options, backoff)


def download_export(address: str, form: str | None, to: str | PathLike[str], options: Options) -> str:
    """The path of the file, whose bytes are proved. See `export`."""
    path = fspath(to)
    backoff = Backoff(options)
    known = form or parameter(url_of(address, "stream"), "format") or _FORMS.get(splitext(path)[1].lower())
    url, export = _complete(address, known, options, backoff)
    _write(url, export, path, options)
    return path


def download_to(url: str, path: str | PathLike[str], options: Options) -> None:
    """Writes the file of an export. See `download`."""
    found = _EXPORT.fullmatch(urlsplit(url).path)
    if found is None:
        raise ValueError(f"{url!r} is not the URL of an export")
    parts = urlsplit(url)._replace(path=found["path"], fragment="")
    export = _ended(urlunsplit(parts._replace(query="")), options, Backoff(options))
    _write(urlunsplit(parts), export, fspath(path), options)


def _write(url: str, export: Mapping[str, object], path: str, options: Options) -> None:
    file = export.get("file")
    digest = file.get("sha256") if isinstance(file, dict) else None
    length = file.get("bytes") if isinstance(file, dict) else None
    if not isinstance(digest, str) or not isinstance(length, int):
        raise Refused("the export does not say what its file is")
    parts = urlsplit(url)
    write_file(ExportedFile(urlunsplit(parts._replace(path=f"{parts.path}/file")), length, digest), path, options)


def _complete(address: str, form: str | None, options: Options, backoff: Backoff) -> tuple[str, Mapping[str, object]]:
    """The URL of an export, and what it says when the server has written its file."""
    stream = url_of(address, "stream")
    form = form or parameter(stream, "format") or _DEFAULT_FORM
    stream = asking(stream, {"format": form})
    parts = urlsplit(stream)
    # Behind a proxy, the resource may have another path than the server knows, and so have its exports.
    exports = "/".join([*parts.path.split("/")[:-2], "exports"])
    root = urlunsplit(parts._replace(path=exports, query=""))
    export = _asked(root, options, backoff, _order(stream))
    url = f"{root}/{export['id']}"
    return url, export if export.get("state") == "complete" else _ended(url, options, backoff)


def _ended(url: str, options: Options, backoff: Backoff) -> Mapping[str, object]:
    """The export at this URL, once it is complete. Raises Refused when it ends in another way."""
    waiting = f"{url}?wait={min(_WAIT, int(options.timeout / 2))}"
    while True:
        export = _asked(waiting, options, backoff, None)
        if export.get("state") == "complete":
            return export
        if export.get("state") not in ("queued", "running"):
            problem = export.get("problem")
            detail = problem.get("detail") if isinstance(problem, dict) else None
            raise Refused(f"the export is {export.get('state')}: {detail}")


def _readable(url: str, options: Options, backoff: Backoff) -> str:
    """The URL of a file for a reader. Where the server only leads to a bucket, the signed link, which needs no key:
    readers such as urllib would send the key on to there."""
    while True:
        try:
            lead = Lead(url, "*/*", options, backoff)
            with lead:
                return lead.location() or url
        except Interrupted as failure:
            backoff.after(failure)


def _order(stream: str) -> bytes:
    members = {"resource": json.dumps(resource_of(stream))}
    for name, value in parse_qsl(urlsplit(stream).query, keep_blank_values=True):
        if name == "fields":
            members[name] = json.dumps(value.split(","))
        elif name in _LITERALS and _is_literal(value):
            members[name] = value  # with all its digits
        else:
            members[name] = json.dumps(value)
    return ("{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in members.items()) + "}").encode()


def _is_literal(text: str) -> bool:
    try:
        return isinstance(json.loads(text), int | float | bool)
    except ValueError:
        return False


def _asked(url: str, options: Options, backoff: Backoff, body: bytes | None) -> Mapping[str, object]:
    """The export at this URL, or the one that this order makes. An order that is lost is sent again."""
    while True:
        try:
            with Answer(url, _JSON, options, backoff, body) as answer:
                export = answer.json()
        except Interrupted as failure:
            backoff.after(failure)
            continue
        found = export.get("id") if isinstance(export, dict) else None
        if not isinstance(export, dict) or not isinstance(found, str) or not _ID.fullmatch(found):
            raise Refused("the answer is no export")
        backoff.reset()
        return export
