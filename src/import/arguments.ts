import type { OnConflict } from '../store/store.ts';
import { TEXT_FORMATS, type TextFormat } from '../rows/text-files.ts';
import type { Columns } from './fields.ts';
import { delimiterOfFile, formatOfFile, otherKindOfName } from './file-kinds.ts';
import { nameOfFile } from './resource-name.ts';
import { intoOf, ITEMS, type Target } from './target.ts';
import { KINDS, type Kind, type Types } from './kinds.ts';
import { encodingOf } from './encoding.ts';
import { booleansOf, dateFormOf, type Notation } from './notation.ts';
import { numberNotationOf } from './number-notation.ts';
import { STDIN } from './source.ts';
import { MAX_COUNT, MAX_SEED } from './synthetic.ts';
import { checkOnly, integer, oneOf, readArguments, UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';

export interface Reading extends Notation {
  readonly format: TextFormat;
  readonly columns: Columns;
  readonly types: Types;
  /** What separates the cells of a CSV file. null: that of its header row. */
  readonly delimiter: string | null;
  /** The encoding of the file, as TextDecoder names it. Absent: UTF-8. */
  readonly encoding?: string | undefined;
  /** The lines of a CSV file above its header row. */
  readonly skippedLines?: number;
  /** Texts that stand for no value in cells of a CSV file. */
  readonly missing?: readonly string[];
  /** Names of columns of a CSV file, by their number from 1, in place of those in its header row. */
  readonly names?: ReadonlyMap<number, string>;
  /** Whether a column `a.b` becomes a field of that name, rather than the field `b` of `a`. */
  readonly isFlat?: boolean;
  /** The resource that the rows become. The fields of its indexes must be columns of a CSV file. */
  readonly into?: Target;
}

export type ImportCommand =
  | FileImport
  | (StoredRowsChoice & { readonly kind: 'generate'; readonly count: number; readonly seed: number })
  | (StoredRowsChoice & { readonly kind: 'sample' });

/** What happens to the rows that are in the store. */
interface StoredRowsChoice {
  readonly onConflict: OnConflict;
  /** Whether all rows are removed first. `unconfirmed`: it is asked for without --yes, and refused where there are rows. */
  readonly drop: 'no' | 'unconfirmed' | 'yes';
}

interface FileImport extends StoredRowsChoice, Reading {
  /** Whether the rows of the file take the place of those that are stored, one by one. */
  readonly sync?: 'unconfirmed' | 'yes';
  readonly kind: 'file';
  /** A path, or `-` for stdin. */
  readonly file: string;
  /** Whether rows without keys may come to those that are stored. */
  readonly appends?: boolean;
}

/** The most lines above a header row. */
const MOST_SKIPPED = 1_000_000;
const ON_CONFLICT = ['skip', 'replace', 'fail'] as const satisfies readonly OnConflict[];
/** The options, with what each applies to alone: see checkOnly. */
const OPTIONS = {
  format: { type: 'string', only: ['FILE'] },
  category: { type: 'string', only: ['FILE', '--into items'] },
  price: { type: 'string', only: ['FILE', '--into items'] },
  into: { type: 'string', only: ['FILE'] },
  index: { type: 'string', multiple: true, only: ['FILE'] },
  force: { type: 'boolean', only: ['--index'] },
  id: { type: 'string', only: ['FILE'] },
  type: { type: 'string', only: ['FILE'] },
  delimiter: { type: 'string', only: ['FILE', 'CSV files'] },
  encoding: { type: 'string', only: ['FILE'] },
  'skip-lines': { type: 'string', only: ['FILE', 'CSV files'] },
  'decimal-comma': { type: 'boolean', only: ['FILE', 'CSV files'] },
  thousands: { type: 'string', only: ['FILE', 'CSV files'] },
  currency: { type: 'string', only: ['FILE', 'CSV files'] },
  'date-format': { type: 'string', multiple: true, only: ['FILE', 'CSV files'] },
  booleans: { type: 'string', multiple: true, only: ['FILE', 'CSV files'] },
  null: { type: 'string', multiple: true, only: ['FILE', 'CSV files'] },
  name: { type: 'string', multiple: true, only: ['FILE', 'CSV files'] },
  'no-paths': { type: 'boolean', only: ['FILE', 'CSV files'] },
  'on-conflict': { type: 'string', only: [] },
  drop: { type: 'boolean', only: [] },
  sync: { type: 'boolean', only: ['FILE', 'imports without --drop', 'imports without --on-conflict'] },
  append: { type: 'boolean', only: ['FILE', 'imports without --drop', 'imports without --sync'] },
  yes: { type: 'boolean', only: ['--drop or --sync'] },
  generate: { type: 'string', only: [] },
  seed: { type: 'string', only: ['--generate'] },
  sample: { type: 'boolean', only: [] },
} as const;
type Values = ReturnType<typeof readArguments<typeof OPTIONS>>['values'];

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
  const format = file === undefined ? null : formatOf(file, values.format);
  const name = file === undefined ? undefined : (values.into ?? nameOfFile(file));
  checkOnly(OPTIONS, values, {
    FILE: file !== undefined,
    '--generate': values.generate !== undefined,
    '--index': values.index !== undefined,
    '--into items': name === ITEMS,
    '--drop or --sync': values.drop === true || values.sync === true,
    'imports without --sync': values.sync !== true,
    'imports without --on-conflict': values['on-conflict'] === undefined,
    'imports without --drop': values.drop !== true,
    'CSV files': format === 'csv',
  });

  const onConflict =
    oneOf('--on-conflict', values['on-conflict'], ON_CONFLICT) ?? (file === undefined ? 'skip' : 'fail');
  const drop = !values.drop ? 'no' : values.yes ? 'yes' : 'unconfirmed';
  const stored = { onConflict, drop } as const;
  if (file !== undefined && format !== null && name !== undefined)
    return {
      kind: 'file',
      file,
      ...readingOf(file, format, name === ITEMS, values),
      ...stored,
      into: {
        ...intoOf(name, values.index ?? [], values.force),
        ...(values.into === undefined && { isOfFile: true }),
      },
      ...(values.append && { appends: true }),
      ...(values.sync && { sync: values.yes ? 'yes' : 'unconfirmed' }),
    };
  if (values.generate === undefined) return { kind: 'sample', ...stored };
  return {
    kind: 'generate',
    count: integer('--generate', values.generate, 1, MAX_COUNT),
    seed: integer('--seed', values.seed ?? '1', 0, MAX_SEED),
    ...stored,
  };
}

function formatOf(file: string, given: string | undefined): TextFormat {
  const format = oneOf('--format', given, TEXT_FORMATS) ?? formatOfFile(file);
  if (format !== null) return format;
  const other = otherKindOfName(file);
  if (other !== null) throw new UsageError(other);
  const reason =
    file === STDIN
      ? 'standard input has no file name'
      : `the name ${quoted(file)} does not indicate a format`;
  throw new UsageError(`--format is required (one of ${TEXT_FORMATS.join(', ')}): ${reason}`);
}

function readingOf(file: string, format: TextFormat, isItem: boolean, values: Values): Omit<Reading, 'into'> {
  const columns = {
    category: values.category ?? (isItem ? 'category' : null),
    price: values.price ?? (isItem ? 'price' : null),
    id: values.id ?? null,
  };
  const named = Object.values(columns).filter((name) => name !== null);
  const twice = named.find((name, n) => named.indexOf(name) < n);
  if (twice !== undefined) throw new UsageError(`the column ${quoted(twice)} cannot become two fields`);
  return {
    format,
    columns,
    types: values.type === undefined ? new Map<string, Kind>() : typesOf(values.type),
    delimiter: values.delimiter === undefined ? delimiterOfFile(file) : delimiterNamed(values.delimiter),
    ...(values.encoding !== undefined && { encoding: encodingOf(values.encoding) }),
    ...(values['skip-lines'] !== undefined && {
      skippedLines: integer('--skip-lines', values['skip-lines'], 0, MOST_SKIPPED),
    }),
    ...numbersOf(values),
    ...(values['date-format'] && { dates: values['date-format'].map(dateFormOf) }),
    ...(values.booleans && { booleans: booleansOf(values.booleans) }),
    ...(values.null && { missing: values.null }),
    ...(values.name && { names: namesOf(values.name) }),
    ...(values['no-paths'] && { isFlat: true }),
  };
}

function numbersOf({
  'decimal-comma': hasDecimalComma,
  thousands,
  currency,
}: Values): Pick<Reading, 'numbers'> {
  if (!hasDecimalComma && thousands === undefined && currency === undefined) return {};
  return { numbers: numberNotationOf({ hasDecimalComma: hasDecimalComma ?? false, thousands, currency }) };
}

/** The delimiter that the command names: one ASCII character, or `tab`. */
function delimiterNamed(name: string): string {
  const character = name === 'tab' ? '\t' : name;
  if (/^[\t\x20-\x7e]$/.test(character) && character !== '"') return character;
  throw new UsageError(`--delimiter takes one ASCII character, or tab, and no quote; got ${quoted(name)}`);
}

/** The names of columns by their numbers: `1=index`. */
function namesOf(texts: readonly string[]): ReadonlyMap<number, string> {
  return new Map(
    texts.map((text) => {
      const [, number, name] = /^([1-9]\d{0,4})=(.+)$/s.exec(text) ?? [];
      if (number === undefined || name === undefined)
        throw new UsageError(
          `--name takes the number of a column and its name, such as 1=index; got ${quoted(text)}`,
        );
      return [Number(number), name];
    }),
  );
}

/** The declared kinds: `zip=string,createdAt=date`. A name may itself contain commas and equals signs. */
function typesOf(text: string): Types {
  const found = [...text.matchAll(new RegExp(`(.+?)=(${KINDS.join('|')})(?:,|$)`, 'gsy'))];
  const rest = text.slice(found.map(([all]) => all).join('').length);
  if (rest !== '' || text === '')
    throw new UsageError(`--type takes NAME=KIND,... with kinds ${KINDS.join(', ')}; got ${quoted(rest)}`);
  return new Map(found.map(([, name = '', kind]) => [name, kind as Kind]));
}
