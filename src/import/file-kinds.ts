import { formatOfName, type TextFormat } from '../rows/text-files.ts';
import { quoted } from '../terminal/text.ts';

/** Extensions of files with columns besides .csv, and what separates the columns. null: the header row tells. */
const TABLES: ReadonlyMap<string, string | null> = new Map([
  ['tsv', '\t'],
  ['tab', '\t'],
  ['txt', null],
]);

/** A kind of file that is no text of rows. */
interface OtherKind {
  readonly is: string;
  readonly extensions: readonly string[];
  /** How its bytes begin, as Latin-1. Absent: as those of other files may. */
  readonly begins?: RegExp;
  /** What makes rows of FILE: a command that writes them, or what its user does. */
  readonly by: string;
  /** The format that the command writes. Absent: that of the name, or CSV. */
  readonly writes?: TextFormat;
}

const SAVE = 'save it as CSV UTF-8, as its program or soffice --headless --convert-to csv FILE does';
/** The first that fits: workbooks are zip archives, too. */
const OTHERS: readonly OtherKind[] = [
  {
    is: 'an Excel workbook',
    extensions: ['xlsx', 'xlsm'],
    begins: /^PK\x03\x04[^]*(?:\[Content_Types\]\.xml|xl\/)/,
    by: SAVE,
  },
  { is: 'an Excel workbook', extensions: ['xls'], begins: /^\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1/, by: SAVE },
  {
    is: 'an OpenDocument spreadsheet',
    extensions: ['ods'],
    begins: /^PK\x03\x04[^]{26}mimetypeapplication\/vnd\.oasis\.opendocument\.spreadsheet/,
    by: SAVE,
  },
  { is: 'a zip archive', extensions: ['zip'], begins: /^PK\x03\x04/, by: 'unzip -p FILE' },
  { is: 'a file of bzip2', extensions: ['bz2'], begins: /^BZh[1-9]1AY&SY/, by: 'bzip2 -dc FILE' },
  { is: 'a file of xz', extensions: ['xz'], begins: /^\xfd7zXZ\0/, by: 'xz -dc FILE' },
  {
    is: 'a Parquet file',
    extensions: ['parquet'],
    begins: /^PAR1\x15/,
    by: `duckdb -c "copy (from 'FILE') to '/dev/stdout' (format json)"`,
    writes: 'ndjson',
  },
  { is: 'a dump of BSON', extensions: ['bson'], by: 'bsondump FILE', writes: 'ndjson' },
];

/** The format of a file as its name says it. null: it says none. */
export function formatOfFile(file: string): TextFormat | null {
  return formatOfName(file) ?? (TABLES.has(extensionOf(file)) ? 'csv' : null);
}

/** What separates the columns of a file as its name says it. null: its header row tells. */
export function delimiterOfFile(file: string): string | null {
  return TABLES.get(extensionOf(file)) ?? null;
}

/** Why a file of this name has no rows to import, and how it gets some. null: its name does not say so. */
export function otherKindOfName(file: string): string | null {
  const kind = OTHERS.find(({ extensions }) => extensions.includes(extensionOf(file)));
  const inner = formatOfFile(file.replace(/\.[^.]*$/, ''));
  return kind ? explained(quoted(file), kind, inner ?? 'csv') : null;
}

/** Why bytes that begin like this have no rows of a format, and how they get some. null: they may have. */
export function otherKindOfBytes(head: Buffer, format: TextFormat): string | null {
  const text = head.toString('latin1');
  const kind = OTHERS.find(({ begins }) => begins?.test(text));
  return kind ? explained('the file', kind, format) : null;
}

function explained(what: string, { is, by, writes }: OtherKind, format: TextFormat): string {
  const way = by === SAVE ? by : `${by} | sluice import - --format ${writes ?? format} --into NAME`;
  return `${what} is ${is}, not CSV or JSON; for its rows: ${way}`;
}

function extensionOf(file: string): string {
  return /\.([a-z0-9]+)(?:\.(?:gz|br|zst))?$/i.exec(file)?.[1]?.toLowerCase() ?? '';
}
