import { ByteBuffer } from 'flatbuffers';

/** A message of an Arrow IPC stream. */
export interface ArrowMessage {
  readonly kind: 'schema' | 'record batch';
  /** The custom metadata of a record batch, or that of a schema. */
  readonly metadata: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** Where the message ends in the stream. */
  readonly end: number;
  /** Of a record batch: the number of its rows, and its buffers, in the order of its columns. */
  readonly rows: number;
  readonly buffers: readonly Buffer[];
}

/** The messages of a whole stream. Throws when it does not end with its end marker. */
export function arrowMessages(stream: Buffer): readonly ArrowMessage[] {
  const messages: ArrowMessage[] = [];
  for (let at = 0; ;) {
    if (at === stream.length) throw new Error('the stream has no end marker');
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
    const body = stream.subarray(begin, begin + length);
    at = begin + length;
    messages.push({ kind, metadata, body, end: at, ...(isSchema ? NO_ROWS : rowsOf(head, schema, body)) });
  }
}

const NO_ROWS = { rows: 0, buffers: [] };

/** What a RecordBatch says of its body. */
function rowsOf(head: ByteBuffer, batch: number, body: Buffer): Pick<ArrowMessage, 'rows' | 'buffers'> {
  const rowsAt = head.__offset(batch, 4);
  const buffersAt = batch + head.__offset(batch, 8);
  const first = head.__vector(buffersAt);
  const buffers = Array.from({ length: head.__vector_len(buffersAt) }, (_, n) => {
    const [at, length] = [0, 8].map((offset) => Number(head.readInt64(first + 16 * n + offset))) as [
      number,
      number,
    ];
    return body.subarray(at, at + length);
  });
  return { rows: rowsAt === 0 ? 0 : Number(head.readInt64(batch + rowsAt)), buffers };
}

/**
 * The rows of record batches whose columns are of these kinds, which must be `text`, `json`, `decimal`, `integer`, `double`
 * or `decimal(38,s)`, whose values come as integers, without their point.
 */
export function arrowRows(batches: readonly ArrowMessage[], kinds: readonly string[]): readonly unknown[][] {
  return batches.flatMap(({ rows, buffers }) => {
    const rest = [...buffers];
    const columns = kinds.map((kind) => {
      const [validity, second] = [rest.shift(), rest.shift()] as [Buffer, Buffer];
      const data = ['text', 'json', 'decimal'].includes(kind) ? rest.shift() : undefined;
      return (row: number) => {
        if (validity.length > 0 && (((validity[row >> 3] ?? 0) >> (row & 7)) & 1) === 0) return null;
        if (data) return data.toString('utf8', second.readInt32LE(4 * row), second.readInt32LE(4 * row + 4));
        if (kind.startsWith('decimal('))
          return (second.readBigInt64LE(16 * row + 8) << 64n) | second.readBigUInt64LE(16 * row);
        return kind === 'double' ? second.readDoubleLE(8 * row) : second.readBigInt64LE(8 * row);
      };
    });
    return Array.from({ length: rows }, (_, row) => columns.map((cell) => cell(row)));
  });
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
