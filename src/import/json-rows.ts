import { isUtf8 } from 'node:buffer';
import { getOrMake } from '../base/get-or-make.ts';
import { quoted } from '../terminal/text.ts';
import { nameBytes } from './document-writer.ts';
import { fieldNames, pathOf, type Columns } from './fields.ts';
import { JsonReader, type FieldRename, type FieldDeclaration, type FieldName } from './json-reader.ts';
import { withoutTwice } from './json-twice.ts';
import { writeKind, type Types } from './kinds.ts';
import { BadRow, NotJson } from './row.ts';
import { RowWriter } from './row-writer.ts';

const ROOT_NAME = nameBytes('');
const ROOT_DEPTH = 1;

/** The kinds that were declared for the fields of JSON rows by their paths. Paths lead through arrays. */
export class FieldTypes {
  /** What was declared for a row. */
  readonly root = undeclared();
  /** The fields that have a kind, by the names that --type has for them. */
  readonly #typed = new Map<string, FieldDeclaration>();

  constructor(types: Types) {
    for (const [name, kind] of types) {
      const field = pathOf(name).reduce(({ inner }, part) => getOrMake(inner, part, undeclared), this.root);
      this.#typed.set(name, field);
      field.write = (writer, bytes, text) => {
        try {
          writeKind(writer, bytes, text, kind, {});
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
}

function undeclared(): FieldDeclaration {
  return { write: null, isSeen: false, inner: new Map() };
}

/**
 * Returns the function that makes items of JSON texts, from their bytes to the bytes of BSON: the top-level fields in
 * their order, mapped fields under their new names, `_id` first. It throws NotJson when a text is not JSON, and BadRow
 * when it is no item.
 */
export function jsonRows(
  columns: Columns,
  { root: { inner: declared } }: FieldTypes,
  writer: RowWriter,
): (text: Buffer) => Uint8Array {
  const reader = new JsonReader(writer);
  const fieldOf = fieldNames(columns, columns.id ?? '_id');
  /** Where the field `id` is, which is the key when there is no `_id`. -1: the row has none. */
  const spare = { from: -1, to: -1 };

  const becoming = (text: string): FieldRename => {
    const [field] = fieldOf(text, [text]) ?? [];
    const isSpare = field === 'id' && columns.id === null;
    return { bytes: field === undefined ? null : nameBytes(field), isKey: field === '_id', isSpare };
  };

  /** Writes a top-level field as the field that it becomes. */
  const writeField = (name: FieldName): void => {
    const { text } = name;
    const { bytes, isKey, isSpare } = (name.becomes ??= becoming(text));
    const { offset } = writer;
    try {
      reader.value(bytes ?? name.bytes, ROOT_DEPTH + 1, declared.get(text) ?? null);
    } catch (error) {
      throw error instanceof BadRow && !(error instanceof NotJson) ? error.in('field', text) : error;
    }
    if (bytes === null) writer.rewind(offset);
    else if (isKey) writer.setKey(offset);
    else if (isSpare) {
      spare.from = offset;
      spare.to = writer.offset;
    }
  };

  const rowOf = (text: Buffer): Uint8Array => {
    if (!isUtf8(text)) throw new BadRow('the row is not valid UTF-8');
    writer.begin();
    spare.from = -1;
    reader.begin(text);
    const { isAtObject } = reader;
    if (isAtObject) reader.members(ROOT_DEPTH, null, writeField);
    else reader.value(ROOT_NAME, ROOT_DEPTH + 1, null);
    reader.end();
    if (reader.hasTwice) return rowOf(Buffer.from(withoutTwice(text.toString())));
    if (!isAtObject) throw new BadRow('the row is not a JSON object');
    if (!writer.hasKey && columns.id !== null)
      throw new BadRow(`the row has no field ${quoted(columns.id)} for the id`);
    if (!writer.hasKey && spare.from >= 0) writer.setKey(spare.from, spare.to);
    return writer.endRow();
  };
  return rowOf;
}
