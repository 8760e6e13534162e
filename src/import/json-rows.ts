import { isUtf8 } from 'node:buffer';
import { quoted } from '../terminal/text.ts';
import { nameBytes } from './document-writer.ts';
import { fieldNames, pathOf, type Columns } from './fields.ts';
import { JsonReader, type Becoming, type Declared, type FieldName } from './json-reader.ts';
import { writeKind, type Types } from './kinds.ts';
import type { Notation } from './notation.ts';
import { BadRow, NotJson } from './row.ts';
import { RowWriter } from './row-writer.ts';

const [ROOT_NAME, ROOT_DEPTH] = [nameBytes(''), 1];

/** JSON has its own notation of numbers. */
const PLAIN: Notation = { hasDecimalComma: false };

/** The kinds that were declared for the fields of JSON rows by their paths. Paths lead through arrays. */
export class FieldTypes {
  readonly #fields = new Map<string, Declared>();
  /** The fields that have a kind, by the names that --type has for them. */
  readonly #typed = new Map<string, Declared>();

  constructor(types: Types) {
    for (const [name, kind] of types) {
      let fields = this.#fields;
      let field: Declared | undefined;
      for (const part of pathOf(name)) {
        field = fields.get(part) ?? { write: null, isSeen: false, inner: new Map() };
        fields.set(part, field);
        fields = field.inner;
      }
      if (!field) continue;
      this.#typed.set(name, field);
      field.write = (writer, bytes, text) => {
        try {
          writeKind(writer, bytes, text, kind, PLAIN);
        } catch (error) {
          throw error instanceof BadRow ? error.in('field', name) : error;
        }
      };
    }
  }

  /** The declared names that no row had so far. */
  get unseen(): readonly string[] {
    return [...this.#typed].filter(([, { isSeen }]) => !isSeen).map(([name]) => name);
  }

  /** What was declared for a top-level field. */
  of(field: string): Declared | null {
    return this.#fields.size === 0 ? null : (this.#fields.get(field) ?? null);
  }
}

/**
 * Returns the function that makes items of JSON texts, from their bytes to the bytes of BSON: the top-level fields in
 * their order, mapped fields under their new names, `_id` first. It throws NotJson when a text is not JSON, and BadRow
 * when it is no item.
 */
export function jsonRows(
  columns: Columns,
  types: FieldTypes,
  writer: RowWriter,
): (text: Buffer) => Uint8Array {
  const reader = new JsonReader(writer);
  /** The name that is expected first in a row. */
  const root = { inner: null };
  const fieldOf = fieldNames(columns, columns.id ?? '_id');
  const row = {
    /** The field whose value is being read. */
    inside: null as string | null,
    /** Where the field `id` is, which is the key when there is no `_id`. -1: the row has none. */
    ...{ spareFrom: -1, spareTo: -1 },
  };

  const becoming = (text: string): Becoming => {
    const [field] = fieldOf(text, [text]) ?? [];
    const isSpare = field === 'id' && columns.id === null;
    return { bytes: field === undefined ? null : nameBytes(field), isKey: field === '_id', isSpare };
  };

  /** Writes a top-level field as the field that it becomes. */
  const writeField = (name: FieldName): void => {
    const { text } = name;
    const { bytes, isKey, isSpare } = (name.becomes ??= becoming(text));
    const { offset } = writer;
    row.inside = text;
    reader.value(bytes ?? name.bytes, name, ROOT_DEPTH + 1, types.of(text));
    row.inside = null;
    if (bytes === null) writer.rewind(offset);
    else if (isKey) writer.setKey(offset);
    else if (isSpare) {
      row.spareFrom = offset;
      row.spareTo = writer.offset;
    }
  };

  const read = (text: Buffer): void => {
    writer.begin();
    row.spareFrom = -1;
    row.inside = null;
    reader.begin(text);
    const { isAtObject } = reader;
    if (isAtObject) reader.members(root, ROOT_DEPTH, null, writeField);
    else reader.value(ROOT_NAME, root, ROOT_DEPTH + 1, null);
    reader.end();
    if (!isAtObject) throw new BadRow('the row is not a JSON object');
  };

  return (text) => {
    if (!isUtf8(text)) throw new BadRow('the row is not valid UTF-8');
    try {
      read(text);
    } catch (error) {
      const isValue = error instanceof BadRow && !(error instanceof NotJson);
      throw isValue && row.inside !== null ? error.in('field', row.inside) : error;
    }
    if (!writer.hasKey && columns.id !== null)
      throw new BadRow(`the row has no field ${quoted(columns.id)} for the id`);
    if (!writer.hasKey && row.spareFrom >= 0) writer.setKey(row.spareFrom, row.spareTo);
    return writer.endRow();
  };
}
