export const PULL_HELP = `Usage:
  sluice pull URL -o FILE|- [--format ndjson|json|csv] [--parallel N [--split]] [--snapshot]
                  [--compression br|gzip|none] [--key-file FILE] [--retry-for SECONDS] [--restart]

Pulls a set from GET /items/stream through whatever cuts, proves it, and gives the file its name only then.

  URL                  of the stream, with its filters, sort and fields, in quotes:
                       'http://127.0.0.1:3000/items/stream?category=Ideal&fields=name,price'
  -o, --output FILE    where the rows go; a file of that name is replaced when the pull is whole. - is standard output
  --format FORMAT      ndjson, json (one array) or csv; the same bytes as the server's own format=. Default: format=
                       of the URL, else what the file's name ends in, else ndjson

  --parallel N         N connections (1 to 64), each for a range of ids, put together in order of id. For whole sets
                       in that order, with or without category
  --split              with --parallel: each range stays a file of its own, FILE-1, FILE-2 (before the ending)
  --snapshot           one point in time for all rows (MongoDB replica sets; it lasts for some minutes)
  --compression NAME   on the way: br (default), gzip or none
  --key-file FILE      a file whose first line is the API key

  --retry-for SECONDS  gives up after waiting so long without another proved row (default 300)
  --restart            throws away what an earlier run left

What is proved: rows travel as NDJSON with checkpoints, whatever the format of the file. Only rows are kept that a
checkpoint has proved by their number, bytes and CRC-32; after a cut it goes on behind the last of them. Nothing else
reaches FILE or standard output. What is in the file is read back and checked before it gets its name.

The server is not trusted: a row of more than 100 MiB, a control line of more than 64 KiB, more than 128 MiB without a
checkpoint, a redirect, or a stream that begins again ends the pull. At most one piece is held in memory.

Run it again after anything: rows wait in FILE.part, proofs in FILE.part.state until the set is whole. A pull of another
URL into the same FILE is refused. Standard output cannot be taken back, so a pull into a pipe begins anew; it is whole
when the exit code is 0.

Exit codes: 0 the set is whole and proved, 1 it is not, 2 wrong use.
`;
