import { ByteBuffer } from 'flatbuffers';

/** A message of an Arrow IPC stream. */
export interface ArrowMessage {
  readonly kind: 'schema' | 'record batch';
  /** The custom metadata of a record batch, or that of a schema. */
  readonly metadata: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/** The messages of a whole stream. Throws when it does not end with its end marker. */
export function arrowMessages(stream: Buffer): readonly ArrowMessage[] {
  const messages: ArrowMessage[] = [];
  for (let at = 0; ;) {
    if (stream.readUInt32LE(at) !== 0xffffffff) throw new Error(`no message begins at ${at}`);
    const size = stream.readInt32LE(at + 4);
    if (size === 0) {
      if (at + 8 !== stream.length) throw new Error('something follows the end');
      return messages;
    }
    const head = new ByteBuffer(stream.subarray(at + 8, at + 8 + size));
    const table = head.readInt32(0);
    const isSchema = head.readInt8(table + head.__offset(table, 6)) === 1;
    const lengthAt = head.__offset(table, 10);
    const length = lengthAt === 0 ? 0 : Number(head.readInt64(table + lengthAt));
    const schema = head.__indirect(table + head.__offset(table, 8));
    const metadata = isSchema ? metadataOf(head, schema, 8) : metadataOf(head, table, 12);
    const begin = at + 8 + size;
    const kind = isSchema ? 'schema' : 'record batch';
    messages.push({ kind, metadata, body: stream.subarray(begin, begin + length) });
    at = begin + length;
  }
}

/** The pairs of key and value in a member of a table. */
function metadataOf(head: ByteBuffer, table: number, member: number): ReadonlyMap<string, string> {
  const facts = new Map<string, string>();
  const offset = head.__offset(table, member);
  if (offset === 0) return facts;
  const vector = head.__vector(table + offset);
  for (let n = 0; n < head.__vector_len(table + offset); n++) {
    const pair = head.__indirect(vector + 4 * n);
    const text = (slot: number) => String(head.__string(pair + head.__offset(pair, slot)));
    facts.set(text(4), text(6));
  }
  return facts;
}
