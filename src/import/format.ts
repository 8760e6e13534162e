import { itemsUnderHeader } from './cells.ts';
import { readCsv } from './csv.ts';
import type { Columns } from './item.ts';
import { readJson } from './json-array.ts';
import { readNdjson } from './ndjson.ts';
import { peek } from './peek.ts';
import { BrokenSource, type Rows } from './row.ts';
import { quoted } from '../terminal/text.ts';

export const FORMATS = ['csv', 'ndjson', 'json'] as const;
export type Format = (typeof FORMATS)[number];

/** The length of the longest byte order mark, plus one. Bytes. */
const MARK_BYTES = 4;
/** File name extensions, before `.gz`, `.br` or `.zst`. */
const ENDINGS: Readonly<Record<string, Format>> = {
  csv: 'csv',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'json',
};

/** The format that a file's name indicates. null when it indicates none. */
export function formatOfName(file: string): Format | null {
  const ending = /\.([a-z]+)(?:\.(?:gz|br|zst))?$/i.exec(file)?.[1]?.toLowerCase() ?? '';
  return ENDINGS[ending] ?? null;
}

/**
 * The rows of a file's decompressed content. `json` stands for an array, or for one object per line:
 * mongoexport writes the latter to files ending in .json, so the first byte that is not blank decides.
 */
export async function readRows(
  content: AsyncIterable<Buffer>,
  format: Format,
  columns: Columns,
): Promise<Rows> {
  const { head, bytes } = await peek(
    content,
    (seen) => seen.length >= MARK_BYTES && firstCharacter(seen) !== '',
  );
  refuseUtf16(head);
  switch (format) {
    case 'csv':
      return { unit: 'line', rows: readCsv(bytes, (header) => itemsUnderHeader(header, columns)) };
    case 'ndjson':
      return { unit: 'line', rows: readNdjson(bytes, columns) };
    case 'json':
      return readArrayOrLines(head, bytes, columns);
  }
}

function readArrayOrLines(head: Buffer, bytes: AsyncIterable<Buffer>, columns: Columns): Rows {
  const first = firstCharacter(head);
  if (first === '[') return { unit: 'row', rows: readJson(bytes, columns) };
  if (first === '{') return { unit: 'line', rows: readNdjson(bytes, columns) };
  const found = first === '' ? 'is empty' : `begins with ${quoted(first)}`;
  throw new BrokenSource(`a JSON array was expected, or objects one a line; the file ${found}`);
}

/** The first character after blanks and a UTF-8 byte order mark. Empty when none has come so far. */
function firstCharacter(head: Buffer): string {
  return head.toString('latin1').replace('\u00ef\u00bb\u00bf', '').trimStart().slice(0, 1);
}

function refuseUtf16(head: Buffer): void {
  const mark = head.subarray(0, 2).toString('hex');
  if (mark === 'fffe' || mark === 'feff') throw new BrokenSource('the file is UTF-16; UTF-8 was expected');
}
