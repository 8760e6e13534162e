import { BSON_TYPE } from '../store/values/bson-types.ts';
import { quoted } from '../terminal/text.ts';
import type { RowOfRecord } from './csv.ts';
import type { CsvRecord } from './csv-scanner.ts';
import { writeCommonCell } from './common-types.ts';
import { nameBytes } from './document-writer.ts';
import { simpleCell, writeKind, type CellKind } from './kinds.ts';
import type { Notation } from './notation.ts';
import { BadRow } from './row.ts';
import type { RowWriter } from './row-writer.ts';
import type { Column } from './column.ts';

const QUOTE = 0x22;

/** A field of a row: the one of a column, or a document. */
interface Field {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The column, and its place. null: a document. */
  readonly cell: { readonly index: number; readonly column: Column } | null;
  /** The fields of the document. */
  readonly inner: Field[];
  /** Whether any value of it is what the check of items wants of its name: a text as category, a finite number as price. */
  readonly isAsChecked: boolean;
}

/** Those that the check of items looks at. */
const CHECKED_FIELDS = 2;
/** The kinds of which each value is a finite number. */
const NUMBERS: ReadonlySet<string> = new Set<CellKind>(['number', 'plain number', 'integer']);

/**
 * Returns the function that turns the rows of a table into items, once the kinds of its columns are known. A row with a
 * cell of another kind is refused, so that a column never has values of two kinds. The fields of a nested document are
 * together, where the first of its columns is.
 */
export function rowsOfTable(table: readonly Column[], notation: Notation, writer: RowWriter): RowOfRecord {
  const fields: Field[] = [];
  for (const [index, column] of table.entries()) {
    const { path } = column;
    if (path === null) continue;
    let inner = fields;
    for (const outer of path.slice(0, -1)) {
      const known = inner.find(({ name }) => name === outer);
      const document = known ?? fieldOf(outer, null);
      if (!known) inner.push(document);
      inner = document.inner;
    }
    inner.push(fieldOf(path.at(-1) ?? '', { index, column }));
  }
  return (record) => {
    writer.begin();
    let known = 0;
    for (const field of fields) if (writeField(writer, field, record, notation) && field.isAsChecked) known++;
    return writer.endRow(known === CHECKED_FIELDS);
  };
}

function fieldOf(name: string, cell: Field['cell']): Field {
  const kind = cell?.column.kind ?? 'json';
  const isAsChecked = name === 'category' ? kind === 'string' : name === 'price' && NUMBERS.has(kind);
  return { name, bytes: nameBytes(name), cell, inner: [], isAsChecked };
}

/** Writes a field. Returns whether the record has a value for it. */
function writeField(
  writer: RowWriter,
  { bytes, cell, inner }: Field,
  record: CsvRecord,
  notation: Notation,
): boolean {
  if (cell) return writeCell(writer, cell, bytes, record, notation);
  const { offset } = writer;
  writer.element(BSON_TYPE.document, bytes);
  const start = writer.open();
  let hasValue = false;
  for (const field of inner) hasValue = writeField(writer, field, record, notation) || hasValue;
  if (hasValue) writer.close(start);
  else writer.rewind(offset);
  return hasValue;
}

function writeCell(
  writer: RowWriter,
  { index, column: { name, isKey, kind = 'string', fits } }: NonNullable<Field['cell']>,
  field: Uint8Array,
  record: CsvRecord,
  notation: Notation,
): boolean {
  const from = record.starts[index] ?? 0;
  const to = record.ends[index] ?? 0;
  // `""` is a text. In a column of numbers it is no value: some programs write every cell in quotes.
  if (record.isMissing(index) || (from === to && (kind !== 'string' || isKey))) {
    if (isKey) throw new BadRow('the id is empty').in('column', name);
    return false;
  }
  const { offset } = writer;
  const number = simpleCell(kind, notation, record.bytes, from, to);
  if (kind === 'string') writeText(writer, field, record, index);
  else if (!Number.isNaN(number)) writer.number(field, number);
  else if (!writeCommonCell(writer, field, kind, { bytes: record.bytes, from, to }, notation))
    try {
      writeKind(writer, field, record.text(index), kind, notation);
    } catch (error) {
      if (!(error instanceof BadRow)) throw error;
      // It was guessed from the cells that were read before.
      if (fits.length > 0)
        error.message += `, but the cells from which the import took the column's kind are; declare the kind, such as --type ${quoted(`${name}=string`)}`;
      throw error.in('column', name);
    }
  if (isKey) writer.setKey(offset);
  return true;
}

/** Writes a cell as a text. In one with quotes, each is written twice. */
function writeText(writer: RowWriter, name: Uint8Array, record: CsvRecord, index: number): void {
  const { bytes: source } = record;
  const from = record.starts[index] ?? 0;
  const to = record.ends[index] ?? 0;
  const start = writer.openText(name);
  if (record.hasQuotes[index]) putUnquoted(writer, source, from, to);
  else writer.put(source, from, to);
  writer.closeText(start);
}

function putUnquoted(writer: RowWriter, source: Uint8Array, from: number, to: number): void {
  writer.room(to - from);
  const { bytes } = writer;
  let { at } = writer;
  for (let n = from; n < to; n++) {
    const byte = source[n] ?? 0;
    bytes[at++] = byte;
    if (byte === QUOTE) n++;
  }
  writer.at = at;
}
