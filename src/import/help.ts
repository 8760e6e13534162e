export const IMPORT_HELP = `Usage:
  sluice import FILE|- [--into NAME] [--id COLUMN] [--index a,b]... [OPTION...]
  sluice import FILE|- --into items [--category COLUMN] [--price COLUMN] [--id COLUMN] [OPTION...]
  sluice import --generate N [--seed S] [OPTION...]
  sluice import --sample [OPTION...]

Writes the rows of a file into a resource of the store that the settings name (MONGODB_URI if it is set, otherwise
DATA_DIR), and GET /NAME serves them. The resource has the name of the file without folder, format and compression,
letter for letter: data/stock.csv.gz becomes /stock.

Sources:
  FILE             A file, or - for standard input. gzip and zstd are recognized by their first bytes, Brotli by the
                   extension .br.
  --generate N     N synthetic items. The same seed always gives the same items.
  --seed S         The seed, from 0 to 4294967295 (default 1).
  --sample         The bundled catalogue of 53,940 diamonds.

How a file is read:
  --format FORMAT    csv (with a header row), or ndjson or json, which are alike: an array of objects, one object per
                     line, or objects over several lines. Default: the file extension .csv, .tsv, .tab, .txt, .ndjson,
                     .jsonl or .json, before any .gz, .br or .zst. A file of json that is one object with an array of
                     objects in a member is refused.
  --id COLUMN        The column or field that becomes the key of a row. Every row must then have it. Default: _id if the
                     row has it, otherwise id. A row with neither gets a new ObjectId.

  --encoding NAME    The encoding of the file: windows-1252, iso-8859-15, utf-16le, or another that TextDecoder knows
                     (default utf-8).

  A column that becomes another field does not keep its own name. It replaces any column that already has the name of
  that field.

Resources:
  --into NAME        The resource NAME instead, which is made when it is missing. Standard input, and a file whose name
                     no resource may have, need it. Columns and fields keep their names. The column _id or id is the
                     key of a row. In MongoDB the resource is the collection NAME.
  --index a,b        An index that filters by a and sorts by b, or by the key. It ends with the key. May be repeated.
  --force            Makes an index of a field that no row has. Without it such an index is refused.

The resource items is declared with two fields that every row has, and with indexes of its own. So a file called items
goes into it, and others with --into items:
  --category COLUMN  The column or field that becomes category, a text (default category).
  --price COLUMN     The column or field that becomes price, a finite number (default price).

CSV files:
  --delimiter C      The character between cells, or tab. Default: tab for .tsv and .tab, else the one of comma,
                     semicolon and tab that the header row contains outside of quotes.
  --skip-lines N     The lines above the header row, such as a title. Where line 1 has one filled cell, the import stops
                     and says how many there seem to be; 0 takes it for the header row. A line sep=; is read by itself.
  --decimal-comma    Numbers are written as 1.234,56 or 1234,56.
  --thousands C      What separates thousands: a comma, an apostrophe, a point, or space for any blank: 1,234.50.
  --currency C       A symbol or code before or behind numbers: --currency '$' reads $12.00, -$12 and ($12) as numbers.
  --date-format FORM How dates are written, in tokens of strptime: %d.%m.%Y, '%m/%d/%y %H:%M', with %Y or %y, %m, %d,
                     and perhaps %H %M %S %f %z. Without %z a time is in UTC. May be repeated.
  --booleans YES/NO  The words for true and false, such as yes/no, in upper or lower case. May be repeated.
  --null TEXT        A cell without quotes that has this text has no value, such as --null NA. May be repeated.
  --name N=NAME      The name of column N, in place of the one in the header row: --name 1=index. May be repeated.
  --no-paths         A column a.b keeps that name. Otherwise it becomes the field b of the document a.
  --type NAME=KIND,...
                     What a column is: string, number, decimal (a Decimal128), date, date-utc, boolean, objectid, uuid
                     or json. A cell that is not of that kind makes its row bad.

  A column becomes numbers if every cell is a number as JSON writes it: 12, -0.30, 1e-05, 1.00E+05. A cell such as
  01234, +5 or 1e5 makes the whole column text, and so does a percentage such as 12%. Dates, true and false stay text
  without --type, or --date-format and --booleans, which read a column in whose cells they all fit. An empty cell
  becomes no field; "" becomes an empty text in a column of text.
  Without --date-format a date is 2024-12-31 (midnight UTC) or 2024-12-31T23:59:59Z, with a zone. With date-utc it
  needs none.
  A column customer.country becomes the field country of the document customer.
  A column whose field the resource has already is read as the kind of its values there. A cell of another
  kind makes its row bad.
  The import reads a file twice: first the kinds of its columns, then its rows. From a pipe the first 16 MiB decide. A
  later row with a cell of another kind is bad, and the message says which --type accepts it.
  At the end the import prints what each column became, and the first cell that made it text, with the option that reads
  it. Cells that are no numbers in a column that is declared as numbers are told before any row is written, and so is a
  last row without a key, or with a word such as Total, which may be one of sums, at the end.

JSON and NDJSON files:
  --type PATH=KIND,...
                     What a text, a number, true or false is in the field at this path, such as address.zip: it is read
                     as the text of a cell is. Other values stay.

  JSON may contain Extended JSON ($oid, $date, $numberLong, ...), as mongoexport writes it, also its older $binary with
  $type and $regex with $options. $undefined and $dbPointer, which MongoDB no longer uses, make a row bad.
  Numbers keep all their digits, in CSV files too. A number becomes an Int64 or a Decimal128 (34 digits at most) if a
  double would lose some of its digits.

Rows that are already in the store:
  --drop             Removes all rows of the resource before the import, once the first rows of the source were read.
  --sync             Makes the rows those of the file: writes what differs, removes what the file lacks, and leaves the
                     others as they are. Followers read just that. Rows need keys. A file that breaks off changes
                     nothing, and one with bad rows removes nothing.
  --yes              Confirms --drop, or a --sync that removes more than a tenth of the rows. Without it the import says
                     how many rows it would remove, and changes nothing.
  --append           Adds rows without a key to those that are stored. Without it, --drop or --id, such rows are refused
                     where rows are stored: a second run of a file would add them once more.

Rows whose id is already in the store:
  --on-conflict fail     The import reports the row and counts it as failed (default for FILE).
  --on-conflict skip     The stored row remains (default for --generate and --sample). Use this to repeat an import
                         that was interrupted.
  --on-conflict replace  The new row replaces the stored row. One with the same bytes is no change.

The import reports ten bad rows of each kind with their lines, counts the others by their column, and continues. Nothing
is made or removed before the first row that can be written.
SIGTERM and SIGINT stop the import, and it reports how many rows are stored. Of a load into an empty resource of the
embedded store, or with --drop, there are none: the rows of before stay.

Exit codes: 0 every row is stored, 1 some rows are not stored or the import stopped, 2 the command is wrong.
`;
