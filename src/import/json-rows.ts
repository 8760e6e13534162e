import { isUtf8 } from 'node:buffer';
import { quoted } from '../terminal/text.ts';
import { nameBytes } from './document-writer.ts';
import type { FieldTypes } from './kinds.ts';
import { targetsOf, type Columns } from './fields.ts';
import { JsonReader, type FieldName } from './json-reader.ts';
import { BadRow, NotJson } from './row.ts';
import { RowWriter } from './row-writer.ts';

const [ROOT_NAME, ROOT_DEPTH] = [nameBytes(''), 1];

/**
 * Returns the function that makes items of JSON texts, from their bytes to the bytes of BSON: the top-level fields in
 * their order, mapped fields under their new names, `_id` first. It throws NotJson when a text is not JSON, and BadRow
 * when it is no item.
 */
export function jsonRows(
  columns: Columns,
  types: FieldTypes,
  writer = new RowWriter(columns.price !== null),
): (text: Buffer) => Uint8Array {
  const reader = new JsonReader(writer);
  /** The name that is expected first in a row. */
  const root = { inner: null };
  /** Where the field `id` is, which is the id when there is no `_id`. -1: the row has none. */
  const spare: { name: FieldName | null; from: number; to: number } = { name: null, from: -1, to: -1 };
  const state: { /** The field whose value is being read. */ inside: string | null } = { inside: null };

  const targetsNamed = (name: FieldName) => {
    const { text } = name;
    if (text === 'id' && columns.id === null) spare.name = name;
    return targetsOf(text, [text], columns.id ?? '_id', columns).map(({ role, path: [field = ''] }) => ({
      ...{ role, bytes: nameBytes(field) },
    }));
  };

  /** Writes a top-level field as each of the fields that it becomes. */
  const writeField = (name: FieldName): void => {
    const targets = (name.targets ??= targetsNamed(name));
    const { offset } = writer;
    state.inside = name.text;
    reader.value(targets[0]?.bytes ?? name.bytes, name, ROOT_DEPTH + 1, types.of(name.text));
    state.inside = null;
    if (!targets[0]) writer.rewind(offset);
    else if (targets[0].role !== 'field') writer.add(targets[0].role, offset);
    if (name === spare.name) {
      spare.from = offset;
      spare.to = writer.offset;
    }
    if (targets.length < 2) return;
    let last = offset;
    for (const { role, bytes } of targets.slice(1)) {
      last = writer.repeat(bytes, last);
      writer.add(role, last);
    }
  };

  const read = (text: Buffer): void => {
    writer.begin();
    spare.from = -1;
    state.inside = null;
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
      throw isValue && state.inside !== null ? error.in('field', state.inside) : error;
    }
    if (!writer.hasId && columns.id !== null)
      throw new BadRow(`the row has no field ${quoted(columns.id)} for the id`);
    if (!writer.hasId && spare.from >= 0) writer.add('id', spare.from, spare.to);
    return writer.endRow();
  };
}
