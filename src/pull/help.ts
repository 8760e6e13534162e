export const PULL_HELP = `Usage:
  sluice pull URL -o FILE|- [--parallel N] [--snapshot] [--compression br|gzip|none]
                  [--key-file FILE] [--retry-for SECONDS] [--restart]
  sluice pull URL --into FILE.sqlite [--follow]
  sluice pull URL -o FILE|- --follow
  sluice pull URL/edition -o FILE|- | --into FILE.sqlite | --mirror DIR [--parallel N]
  sluice pull --export URL -o FILE [--key-file FILE] [--retry-for SECONDS] [--restart]

Downloads a set of rows from the stream of a resource and proves that it is complete. When the connection is cut, the
pull continues where it was. FILE appears only when the set is whole.

  URL                  the URL of a resource or of its stream, with filters, sort and fields, in quotes:
                       'http://127.0.0.1:3000/items/stream?category=Ideal&fields=name,price'
                       'http://127.0.0.1:3000/orders?status=paid&sort=createdAt_desc'
  -o, --output FILE    the output file, as NDJSON. It replaces an existing file when the pull is whole. - is standard
                       output.

  --parallel N         pulls N ranges of ids at once (1 to 64) and joins them in id order. It requires id order, and
                       filters that partitions of the resource take: values, not ranges.
  --snapshot           reads all rows at one point in time. It requires a MongoDB replica set, which keeps that
                       point for some minutes.
  --into FILE          keeps a copy of the set in a table of a SQLite file: all rows at first, and only what has changed
                       when it is run again. The table has the resource's name and the columns id, row (JSON) and one
                       for each field.
  --mirror DIR         keeps a folder with the files of editions, as the server has them, which nginx can serve
  --follow             goes on with the changes of the set until it is interrupted. -o FILE then grows by a line for
                       each change: the row as it is now, or {"removed":{"id":...}}.
  --export             the URL is that of an export, or of its file: waits until the server has written it, and
                       downloads it as it is
  --compression NAME   the compression of the transfer: br (default), gzip or none
  --key-file FILE      a file whose first line is the API key

  --retry-for SECONDS  gives up after this time without another proved row (default 300)
  --restart            discards what an earlier run left

Proof: rows travel as NDJSON with checkpoints. A checkpoint proves the rows before it
by their number, bytes and CRC-32. After a cut, the pull continues after the last proved row. Only proved rows reach
FILE or standard output. The pull reads the rows back from disk and checks them before FILE gets its name.

Resuming: run the same command again after a failure. FILE.part keeps the rows, and FILE.part.state keeps the proofs. A
pull of another URL into the same FILE is refused. A pull to standard output always starts from the first row, and its
output is whole only when the exit code is 0.

Copies: lines are written when a checkpoint has proved them, in one transaction with the place behind them. Kill it
anywhere and run it again. If the server no longer has all changes since that place, --into starts again with an empty
table, and -o FILE --follow stops and asks for --restart. FILE.state keeps the place of FILE.

Exports: FILE.part grows, and the same command goes on with it. FILE appears when the SHA-256 is that of the export.
Where the server leads to an object store, that gets no key; a link that ends on the way is asked for anew.

Editions: the URL is that of an edition (URL/edition, or edition.json of a folder or a bucket). Chunks come over 4
connections unless --parallel says otherwise, each is proved by its SHA-256, and all of them by the edition's name. What
FILE, FILE.part or the copy has already is not fetched again. --into takes an edition to begin with, and whenever the
changes are gone; then the deltas of the edition, or the chunks that differ. A mirror's head is replaced
last, in one step.

Exit codes: 0 the set is whole and proved, 1 it is not, 2 wrong usage.
`;
