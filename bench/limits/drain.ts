/**
 * The limit of mongod itself: one cursor read over one socket, with replies counted and discarded. It uses no
 * driver and parses only the length of a reply, and the cursor's id at its end. It does not support servers
 * that require a password.
 */
import { connect } from 'node:net';
import { keyPaths } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/values/bson.ts';
import type { Plan } from '../../src/store/store.ts';
import { answerLines } from './asked.ts';

const BATCH_ROWS = 4000;
/** The wire protocol of MongoDB: 16 bytes of header, 4 of flags, and 1 that announces one document. */
const OP_MSG = 2013;
const HEAD_BYTES = 21;
/** The cursor's id, the namespace and the cluster's time follow the rows: about 300 bytes. */
const TAIL_BYTES = 512;
const ID_FIELD = Buffer.from('\x12id\0');
const READ_BYTES = 1 << 20;

const uri = new URL(process.env.MONGODB_URI ?? '');
const $db = uri.pathname.slice(1);

class Wire {
  bytes = 0;
  /** The end of the current reply, counted as `bytes`. null before its length is known. */
  #end: number | null = null;
  #start = 0;
  readonly #tail = Buffer.alloc(TAIL_BYTES);
  #replied: { resolve: () => void; reject: (error: Error) => void } | null = null;
  readonly #socket = connect({
    host: uri.hostname,
    port: Number(uri.port || 27017),
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafe(READ_BYTES),
      callback: (length, buffer) => {
        this.#take(buffer.subarray(0, length));
        return true;
      },
    },
  }).on('error', (error) => this.#replied?.reject(error));

  /**
   * Sends a command that opens or continues a cursor. Resolves after its reply with the id of the open
   * cursor, 0 at the end.
   */
  async run(command: Record<string, unknown>): Promise<bigint> {
    const body = BSON.serialize({ ...command, $db });
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeInt32LE(HEAD_BYTES + body.length, 0);
    head.writeInt32LE(OP_MSG, 12);
    await new Promise<void>((resolve, reject) => {
      this.#replied = { resolve, reject };
      this.#socket.write(Buffer.concat([head, body]));
    });
    const at = this.#tail.lastIndexOf(ID_FIELD);
    if (at < 0) throw new Error(`${$db}: a command failed: ${this.#tail.toString('latin1')}`);
    return this.#tail.readBigInt64LE(at + ID_FIELD.length);
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    if (chunk.length < TAIL_BYTES) this.#tail.copyWithin(0, chunk.length);
    this.#tail.set(chunk.subarray(-TAIL_BYTES), Math.max(0, TAIL_BYTES - chunk.length));
    // The length comes first and in one piece: only one command is pending, so a reply begins with a segment
    // of its own.
    this.#end ??= this.#start + new DataView(chunk.buffer, chunk.byteOffset).getInt32(0, true);
    if (this.bytes < this.#end) return;
    this.#start = this.bytes;
    this.#end = null;
    this.#replied?.resolve();
  }
}

function findCommand(plan: Plan, find: string): Record<string, unknown> {
  const sort = Object.fromEntries(keyPaths(plan).map((path) => [path, plan.direction]));
  const filter = Object.fromEntries((plan.equals ?? []).map(({ path, value }) => [path, value]));
  return { find, filter, sort, batchSize: BATCH_ROWS };
}

await answerLines(async (plan, collection) => {
  const wire = new Wire();
  try {
    let id = await wire.run(findCommand(plan, collection));
    while (id !== 0n) id = await wire.run({ getMore: id, collection, batchSize: BATCH_ROWS });
    return { rows: null, bytes: wire.bytes };
  } finally {
    wire.close();
  }
});
