import type { OnConflict } from '../store/store.ts';
import { TEXT_FORMATS, formatOfName } from '../rows/formats.ts';
import { intoOf } from './into.ts';
import { delimiterNamed } from './delimiter.ts';
import { KINDS, type Kind, type Types } from './kinds.ts';
import type { Reading } from './reading.ts';
import { STDIN } from './source.ts';
import { MAX_COUNT, MAX_SEED } from './synthetic.ts';
import { integer, oneOf, readArguments, UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';

export const IMPORT_HELP = `Usage:
  sluice import FILE|- [--format csv|ndjson|json] [--category COLUMN] [--price COLUMN] [--id COLUMN]
                       [--type NAME=KIND,...] [--delimiter C] [--decimal-comma]
                       [--on-conflict skip|replace|fail] [--drop [--yes]]
  sluice import FILE|- --into NAME [--index a,b]... (and the options of files)
  sluice import --generate N [--seed S] [--on-conflict skip|replace|fail] [--drop [--yes]]
  sluice import --sample [--on-conflict skip|replace|fail] [--drop [--yes]]

Writes items into the store that the settings name (MONGODB_URI if it is set, otherwise DATA_DIR).

With --into it writes the rows of a resource instead, which GET /NAME serves.

Sources:
  FILE             A file, or - for standard input. gzip and zstd are recognized by their first bytes, Brotli by the
                   extension .br.
  --generate N     N synthetic items. The same seed always gives the same items.
  --seed S         The seed, from 0 to 4294967295 (default 1).
  --sample         The bundled catalogue of 53,940 diamonds.

How a file is read:
  --format FORMAT    csv (with a header row), ndjson (one object per line), or json (an array of objects, or one
                     object per line). Default: the file extension .csv, .ndjson, .jsonl or .json, before any .gz, .br
                     or .zst.
  --category COLUMN  The column or field that becomes the item's category, a string (default category).
  --price COLUMN     The column or field that becomes the item's price, a number (default price).
  --id COLUMN        The column or field that becomes the item's id. Every row must then have it. Default: _id if the
                     row has it, otherwise id. A row with neither gets a new ObjectId.

  A column that becomes another field does not keep its own name. It replaces any column that already has the name of
  that field.

Resources:
  --into NAME        Writes the rows into the resource NAME, which is made when it is missing. Columns and fields keep
                     their names; no category or price is needed. The column _id or id is the key of a row. In MongoDB
                     the resource is the collection NAME.
  --index a,b        An index that filters by a and sorts by b, or by the key. It ends with the key. May be repeated.

CSV files:
  --delimiter C      The character between cells, or tab. Default: the one of comma, semicolon and tab that the header
                     row contains outside of quotes.
  --decimal-comma    Numbers are written as 1.234,56 or 1234,56.
  --type NAME=KIND,...
                     What a column is: string, number, decimal (a Decimal128), date, date-utc, boolean, objectid, uuid
                     or json. A cell that is not of that kind makes its row bad.

  A column becomes numbers if every cell is a number as JSON writes it: 12, -0.30, 1e-05. A cell such as 01234, +5 or
  1e5 makes the whole column text. Dates, true and false stay text without --type. An empty cell becomes no field.
  A date is 2024-12-31 (midnight UTC) or 2024-12-31T23:59:59Z, with a zone. With date-utc it needs none.
  A column customer.country becomes the field country of the document customer.
  The import reads a file twice: first the kinds of its columns, then its rows. From a pipe the first 16 MiB decide. A
  later row with a cell of another kind is bad, and the message says which --type accepts it.
  At the end the import prints what each column became.

JSON and NDJSON files:
  --type PATH=KIND,...
                     A string in the field at this path, such as address.zip, becomes this kind.

  JSON may contain Extended JSON ($oid, $date, $numberLong, ...), as mongoexport writes it, also its older $binary with
  $type and $regex with $options. $undefined and $dbPointer, which MongoDB no longer uses, make a row bad.
  Numbers keep all their digits, in CSV files too. A number becomes an Int64 or a Decimal128 (34 digits at most) if a
  double would lose some of its digits.

Rows that are already in the store:
  --drop             Removes all items, or rows of the resource, before the import, once the first rows of the
                     source were read. Asks on a terminal.
  --yes              Removes them without a question. Required where nobody can answer.

Rows whose id is already in the store:
  --on-conflict fail     The import reports the row and counts it as failed (default for FILE).
  --on-conflict skip     The stored row remains (default for --generate and --sample). Use this to repeat an import
                         that was interrupted.
  --on-conflict replace  The new row replaces the stored row.

The import reports each bad row with its line, counts it, and continues. A row without a category or a price is bad.
SIGTERM and SIGINT stop the import. It finishes the batches in progress and reports how many rows are stored.

Exit codes: 0 every row is stored, 1 some rows are not stored or the import stopped, 2 the command is wrong.
`;

/** The parsed command line of `sluice import`. */
export type ImportCommand = FileImport | GenerateImport | SampleImport;

/** What happens to the rows that are in the store. */
interface Stored {
  readonly onConflict: OnConflict;
  /** Whether all rows are removed first: after a question, or without one. */
  readonly drop: 'no' | 'ask' | 'yes';
}

export interface FileImport extends Stored, Reading {
  readonly kind: 'file';
  /** A path, or `-` for stdin. */
  readonly file: string;
}

interface GenerateImport extends Stored {
  readonly kind: 'generate';
  readonly count: number;
  readonly seed: number;
}

interface SampleImport extends Stored {
  readonly kind: 'sample';
}

const ON_CONFLICT = ['skip', 'replace', 'fail'] as const satisfies readonly OnConflict[];
const OPTIONS = {
  format: { type: 'string' },
  category: { type: 'string' },
  price: { type: 'string' },
  into: { type: 'string' },
  index: { type: 'string', multiple: true },
  id: { type: 'string' },
  type: { type: 'string' },
  delimiter: { type: 'string' },
  'decimal-comma': { type: 'boolean' },
  'on-conflict': { type: 'string' },
  drop: { type: 'boolean' },
  yes: { type: 'boolean' },
  generate: { type: 'string' },
  seed: { type: 'string' },
  sample: { type: 'boolean' },
} as const;
type Values = ReturnType<typeof readArguments<typeof OPTIONS>>['values'];

/** Options that apply only to files. */
const FILE_ONLY = [
  'format',
  'category',
  'price',
  'id',
  'type',
  'delimiter',
  'decimal-comma',
  'into',
] as const;
/** Options that apply only to items. */
const ITEMS_ONLY = ['category', 'price'] as const;
/** Options that apply only to CSV files. */
const CSV_ONLY = ['delimiter', 'decimal-comma'] as const;

/** Parses the arguments of `sluice import`. Throws UsageError, which names the first wrong argument. */
export function parseImportArguments(argv: readonly string[]): ImportCommand {
  const { values, positionals } = readArguments(argv, OPTIONS);
  const [file, second] = positionals;
  const sources = [file, values.generate, values.sample].filter((source) => source !== undefined);
  if (second !== undefined) throw new UsageError(`import takes one FILE; it also got ${quoted(second)}`);
  if (sources.length !== 1) {
    const got = sources.length === 0 ? 'none of them' : 'several';
    throw new UsageError(`import takes one of FILE (- for stdin), --generate N and --sample; it got ${got}`);
  }
  if (values.generate === undefined) refuse(values, ['seed'], '--generate');
  if (file === undefined) refuse(values, FILE_ONLY, 'FILE');

  if (values.into === undefined) refuse(values, ['index'], '--into');
  else refuse(values, ITEMS_ONLY, 'items, not to a resource');
  if (values.drop === undefined) refuse(values, ['yes'], '--drop');

  const onConflict =
    oneOf('--on-conflict', values['on-conflict'], ON_CONFLICT) ?? (file === undefined ? 'skip' : 'fail');
  const drop = !values.drop ? 'no' : values.yes ? 'yes' : 'ask';
  const stored = { onConflict, drop } as const;
  const into = values.into === undefined ? null : intoOf(values.into, values.index ?? []);
  if (file !== undefined)
    return { kind: 'file', file, ...readingOf(file, values), ...stored, ...(into && { into }) };
  if (values.generate === undefined) return { kind: 'sample', ...stored };
  return {
    kind: 'generate',
    count: integer('--generate', values.generate, 1, MAX_COUNT),
    seed: integer('--seed', values.seed ?? '1', 0, MAX_SEED),
    ...stored,
  };
}

function readingOf(file: string, values: Values): Omit<Reading, 'into'> {
  const format = oneOf('--format', values.format, TEXT_FORMATS) ?? formatOfName(file);
  if (format === null) {
    const reason =
      file === STDIN
        ? 'standard input has no file name'
        : `the name ${quoted(file)} does not indicate a format`;
    throw new UsageError(`--format is required (one of ${TEXT_FORMATS.join(', ')}): ${reason}`);
  }
  const isItem = values.into === undefined;
  const columns = {
    category: column('--category', values.category) ?? (isItem ? 'category' : null),
    price: column('--price', values.price) ?? (isItem ? 'price' : null),
    id: column('--id', values.id) ?? null,
  };
  if (format !== 'csv') refuse(values, CSV_ONLY, 'CSV files');
  return {
    ...{ format, columns },
    types: values.type === undefined ? new Map<string, Kind>() : typesOf(values.type),
    delimiter: values.delimiter === undefined ? null : delimiterNamed(values.delimiter),
    hasDecimalComma: values['decimal-comma'] ?? false,
  };
}

/** The declared kinds: `zip=string,createdAt=date`. A name may itself contain commas and equals signs. */
function typesOf(text: string): Types {
  const types = new Map<string, Kind>();
  const form = new RegExp(`(.+?)=(${KINDS.join('|')})(?:,|$)`, 'sy');
  let at = 0;
  while (at < text.length) {
    form.lastIndex = at;
    const [all = '', name = '', kind] = form.exec(text) ?? [];
    if (all === '')
      throw new UsageError(
        `--type takes NAME=KIND,... with kinds ${KINDS.join(', ')}; got ${quoted(text.slice(at))}`,
      );
    if (types.has(name)) throw new UsageError(`--type declares ${quoted(name)} twice`);
    types.set(name, kind as Kind);
    at += all.length;
  }
  if (types.size === 0) throw new UsageError('--type takes NAME=KIND,...; it got an empty string');
  return types;
}

function refuse(values: Values, names: readonly (keyof Values)[], source: string): void {
  const given = names.find((name) => values[name] !== undefined);
  if (given !== undefined) throw new UsageError(`--${given} applies only to ${source}`);
}

function column(option: string, value: string | undefined): string | undefined {
  if (value === '') throw new UsageError(`${option} takes the name of a column; it got an empty string`);
  return value;
}
