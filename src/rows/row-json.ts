import { bookmarkOf, KEY } from '../store/bookmark.ts';
import { Slots } from '../store/turns/slots.ts';
import { Machine, whyFailed } from './machine.ts';
import { rowPass } from './passes.ts';
import { EVERYTHING, KEY_ALONE, type Selection } from './selection.ts';

const CHUNK_BYTES = 16 * 1024;
/** What precedes a row in the body of a BSON array: its type and its place. */
const HEAD = Buffer.from('\x030\0');

/** It has a memory of its own: rows and ids are shown where no transcoder is at hand. */
let machine: Machine | undefined;

/** The JSON of a row. Throws when it is not a sound document, has no `_id`, or nests deeper than 180 levels. */
export const rowToJson = writerOf(EVERYTHING);

/** The same of the row's key alone: `{"id":1}`, or `{"_id":1}` when the row has a field `id` of its own. */
export const keyToJson = writerOf(KEY_ALONE);

/** A row in messages, by its key, so that an operator finds it. Of a damaged row, only the key is decoded. */
export function nameOfRow(row: Uint8Array | undefined): string {
  try {
    if (row) return `The row ${keyToJson(bookmarkOf(row, { sort: KEY }))}`;
  } catch {
    // It has no key, or none that can be decoded.
  }
  return 'A row without a readable id';
}

function writerOf(selection: Selection): (row: Uint8Array) => string {
  let opened: ReturnType<typeof open> | undefined;
  return (row) => {
    const { slots, pass, state, output } = (opened ??= open(selection));
    const input = slots.take(HEAD.length + row.length);
    try {
      const bytes = input.bytes();
      bytes.set(HEAD);
      bytes.set(row, HEAD.length);
      pass.begin(state.address, input.address, input.address + HEAD.length + row.length);
      let text = Buffer.alloc(0);
      do {
        const written = pass.run(state.address, output.address, output.address + CHUNK_BYTES);
        if (written < 0) throw new Error(`The row ${whyFailed(written)}`);
        text = Buffer.concat([text, output.bytes(written)]);
      } while (!pass.finished(state.address));
      return text.toString('utf8', 0, text.length - 1);
    } finally {
      input.release();
    }
  };
}

function open(selection: Selection) {
  machine ??= new Machine(new Slots());
  const { slots } = machine;
  const pass = rowPass(machine, false, selection);
  const state = slots.take(pass.size);
  pass.open(state);
  return { slots, pass, state, output: slots.take(CHUNK_BYTES) };
}
