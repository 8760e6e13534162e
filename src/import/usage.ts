export const IMPORT_HELP = `Usage:
  sluice import FILE|- [--format csv|ndjson|json] [--category COLUMN] [--price COLUMN] [--id COLUMN]
                       [--on-conflict skip|replace|fail]
  sluice import --generate N [--seed S] [--on-conflict skip|replace|fail]
  sluice import --sample [--on-conflict skip|replace|fail]

Writes items into the store that the settings name (MONGODB_URI, else DATA_DIR).

What is imported:
  FILE             a file; - is standard input. gzip and zstd are told by their first bytes, Brotli by the ending .br
  --generate N     N synthetic items, the same every time for a seed
  --seed S         the seed, 0 to 4294967295 (default 1)
  --sample         the bundled catalogue: 53,940 diamonds

How a file is read:
  --format FORMAT  csv (with a header row), ndjson (an object a line) or json (an array of objects; also an object a
                   line). Default: by the file's name: .csv .ndjson .jsonl .json, before .gz .br .zst
  --category NAME  the column or field that becomes the item's category, a text (default category)
  --price NAME     the column or field that becomes its price, a number (default price)
  --id NAME        the column or field that becomes its id; then every row must have it. Default: _id, else id, else
                   each row gets a new ObjectId
  A column that becomes another field is not kept under its own name, and takes the place of a column that has the
  field's name already. In CSV, cells that are numbers become numbers when no digit is lost (12, -0.30, 1e-05, but not
  007 or 1e5); an empty cell is no field. JSON may hold Extended JSON ($oid, $date, $numberLong, ...), as mongoexport
  writes it. Numbers keep all their digits: what a double does not keep becomes a Decimal128 (34 digits at most).

  --on-conflict    what happens to a row whose id is in the store already:
    fail             it is reported and counted as failed (the default for files)
    skip             it is left as it is (the default for --generate and --sample); run an import that was broken off
                     again with this
    replace          the new row replaces it

Bad rows are reported with their line and counted, and the import goes on; one without category or price is bad.
SIGTERM and SIGINT stop it in order: batches under way are finished, and it says how many rows are in.

Exit codes: 0 all rows are in, 1 some are not or the import stopped, 2 wrong use.
`;
