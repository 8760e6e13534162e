export const LOAD_HELP = `Usage:
  sluice load URL [--pages RATE/s|max] [--pullers N] [--followers N] [--for TIME] [--json FILE|-] [OPTION...]
  sluice load URL --find 'p99<50ms'

Puts a load on a running server, and counts only answers that are whole and right. It needs no database. Without options
it asks for 100 pages per second, for 30 s.

Pages:
  --pages RATE/s       sends RATE requests per second by a schedule, however slow the answers are, and counts latency
                       from the time by the schedule. Requests that find all connections busy wait, and that counts.
  --pages max          each connection asks again when it has its answer. The latencies then hide what would have queued.
  --connections N      connections of the readers of pages (default 32)
  --query QUERY        what is asked, instead of a mix of what the server lists; can be given several times:
                       '/orders?status=paid', '3:/orders?limit=100' with weight 3, 'walk:/orders' from page to page
  --page-compression C br, gzip, none, or mixed (default): each connection asks for one of them
                       One request in ten is conditional, as those of clients that keep pages.

Streams:
  --pullers N          pulls N whole streams at once, again and again; checkpoints prove each row
  --slow N@SPEED       N more that read slowly, such as 50@200kB/s
  --stalled N          N streams that are begun and then not read
  --cut N/min          cuts the connection of a puller so often; it resumes
  --stream PATH        the stream to pull, such as '/orders/stream?status=paid'; can be given several times
                       (default: that of the resource with the most rows)
  --format FORMAT      ndjson (default), json, csv or arrow; CSV and JSON have no checkpoints that
                       prove them, so only their form is checked
  --compression NAME   none (default), br or gzip

Changes:
  --followers N        follows the changes of a resource on N connections
  --follow PATH        the resource (default: the first that has changes)
  --write URL          writes a user there about once a second, such as http://127.0.0.1:3001/api/users, and measures
                       the delay to the line of each follower. Users have no changes on the server that writes them, so
                       this is another server on the same database: see docs/load-testing.md
  --write-key-file F   a file with the API key of that server

Time:
  --for TIME           how long, such as 60s or 5min (default 30s; each step of --find: 10s)
  --ramp TIME          how long the rate of pages rises before that (default 5s; before each step of --find: 2s)
  --find CONDITION     raises the rate until the condition breaks, and prints the last rate that held. Conditions:
                       p50, p90, p99, p99.9 or max, below a time: 'p99<50ms'. --pages is the rate to begin with.
                       A step that breaks it runs a second time, and only two in a row count.

  --key-file FILE      a file whose first line is the API key
  --metrics URL        where the metrics of the server are, if a proxy keeps them from the tested URL
  --metrics-key-file F a file with the API key for that
  --expect-refusals    answers with 429 and 503 are no reason for exit code 1
  --trace              each page and stream begins a sampled trace (traceparent); the slowest requests are named with theirs
  --json FILE|-        writes all that was measured as JSON; - is standard output
  --report FILE        writes a report as one HTML page: latencies by percentile, rates and errors over time, each
                       puller, the slowest requests, and the side of the server
  --compare FILE       compares with an earlier run, whose --json FILE this is: better, same or worse than its noise

Ctrl-C ends the test, and prints what was measured until then.

Exit codes: 0 all answers were good; 1 some were refused, cut or missing, or the test could not begin; 2 at least one was
wrong, such as rows that do not fit their checkpoint, or the usage is.
`;
