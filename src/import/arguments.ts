import type { OnConflict } from '../store/store.ts';
import { FORMATS, formatOfName, type Format } from './format.ts';
import { MAX_COUNT, MAX_SEED } from './generate.ts';
import type { Columns } from './item.ts';
import { STDIN } from './open.ts';
import { integer, oneOf, readArguments, UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';

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

export interface GenerateImport {
  readonly kind: 'generate';
  readonly count: number;
  readonly seed: number;
  readonly onConflict: OnConflict;
}

export interface SampleImport {
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
  if (second !== undefined)
    throw new UsageError(`one FILE is imported at a time; it got also ${quoted(second)}`);
  if (sources.length !== 1) {
    const got = sources.length === 0 ? 'none of them' : 'several';
    throw new UsageError(`import takes one of FILE (- for stdin), --generate N and --sample; it got ${got}`);
  }
  if (values.generate === undefined) refuse(values, ['seed'], '--generate');
  if (file === undefined) refuse(values, FILE_ONLY, 'a FILE');

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
    const why = file === STDIN ? 'standard input has no name' : `the name ${quoted(file)} does not tell`;
    throw new UsageError(`--format is needed (one of ${FORMATS.join(', ')}): ${why} what the content is`);
  }
  const columns = {
    category: column('--category', values.category) ?? 'category',
    price: column('--price', values.price) ?? 'price',
    id: column('--id', values.id) ?? null,
  };
  return { kind: 'file', file, format, columns, onConflict };
}

function refuse(values: Values, names: readonly (keyof Values)[], belongsTo: string): void {
  const given = names.find((name) => values[name] !== undefined);
  if (given !== undefined) throw new UsageError(`--${given} goes with ${belongsTo} only`);
}

function column(option: string, value: string | undefined): string | undefined {
  if (value === '') throw new UsageError(`${option} takes the name of a column; it got nothing`);
  return value;
}
