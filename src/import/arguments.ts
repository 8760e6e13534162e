import type { OnConflict } from '../store/store.ts';
import type { Columns } from './item.ts';
import { FORMATS, formatOfName, type Format } from '../rows/formats.ts';
import { STDIN } from './source.ts';
import { MAX_COUNT, MAX_SEED } from './synthetic.ts';
import { integer, oneOf, readArguments, UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';

export const IMPORT_HELP = `Usage:
  sluice import FILE|- [--format csv|ndjson|json] [--category COLUMN] [--price COLUMN] [--id COLUMN]
                       [--on-conflict skip|replace|fail]
  sluice import --generate N [--seed S] [--on-conflict skip|replace|fail]
  sluice import --sample [--on-conflict skip|replace|fail]

Writes items into the store that the settings name (MONGODB_URI if it is set, otherwise DATA_DIR).

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
  A CSV cell becomes a number if the number keeps every digit: 12, -0.30 and 1e-05 become numbers, 007 and 1e5 remain
  text. An empty cell becomes no field.
  JSON may contain Extended JSON ($oid, $date, $numberLong, ...), as mongoexport writes it.
  Numbers keep all their digits. A number becomes an Int64 or a Decimal128 (34 digits at most) if a double would lose
  some of its digits.

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

export interface FileImport {
  readonly kind: 'file';
  /** A path, or `-` for stdin. */
  readonly file: string;
  readonly format: Format;
  readonly columns: Columns;
  readonly onConflict: OnConflict;
}

interface GenerateImport {
  readonly kind: 'generate';
  readonly count: number;
  readonly seed: number;
  readonly onConflict: OnConflict;
}

interface SampleImport {
  readonly kind: 'sample';
  readonly onConflict: OnConflict;
}

const ON_CONFLICT = ['skip', 'replace', 'fail'] as const satisfies readonly OnConflict[];
const OPTIONS = {
  format: { type: 'string' },
  category: { type: 'string' },
  price: { type: 'string' },
  id: { type: 'string' },
  'on-conflict': { type: 'string' },
  generate: { type: 'string' },
  seed: { type: 'string' },
  sample: { type: 'boolean' },
} as const;
type Values = ReturnType<typeof readArguments<typeof OPTIONS>>['values'];

/** Options that apply only to files. */
const FILE_ONLY = ['format', 'category', 'price', 'id'] as const;

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

  const onConflict = oneOf('--on-conflict', values['on-conflict'], ON_CONFLICT);
  if (file !== undefined) return fileImport(file, values, onConflict ?? 'fail');
  if (values.generate === undefined) return { kind: 'sample', onConflict: onConflict ?? 'skip' };
  return {
    kind: 'generate',
    count: integer('--generate', values.generate, 1, MAX_COUNT),
    seed: integer('--seed', values.seed ?? '1', 0, MAX_SEED),
    onConflict: onConflict ?? 'skip',
  };
}

function fileImport(file: string, values: Values, onConflict: OnConflict): FileImport {
  const format = oneOf('--format', values.format, FORMATS) ?? formatOfName(file);
  if (format === null) {
    const reason =
      file === STDIN
        ? 'standard input has no file name'
        : `the name ${quoted(file)} does not indicate a format`;
    throw new UsageError(`--format is required (one of ${FORMATS.join(', ')}): ${reason}`);
  }
  const columns = {
    category: column('--category', values.category) ?? 'category',
    price: column('--price', values.price) ?? 'price',
    id: column('--id', values.id) ?? null,
  };
  return { kind: 'file', file, format, columns, onConflict };
}

function refuse(values: Values, names: readonly (keyof Values)[], source: string): void {
  const given = names.find((name) => values[name] !== undefined);
  if (given !== undefined) throw new UsageError(`--${given} applies only to ${source}`);
}

function column(option: string, value: string | undefined): string | undefined {
  if (value === '') throw new UsageError(`${option} takes the name of a column; it got an empty string`);
  return value;
}
