import { AppError, storeUnavailable } from '../../../base/errors.ts';
import { MaxKey, MinKey, UUID, type Document } from '../../values/bson.ts';
import { PRIMARY_FIRST } from '../commands.ts';
import type { CommandOptions, MongoConnection } from '../connection.ts';
import { CODES, MongoRefusal, serverCodeOf } from '../errors.ts';
import { rowsOf } from '../reply.ts';

/** MongoDB 6.0, the first version that accepts `collectionUUID`. */
const OLDEST_WIRE_VERSION = 17;

/** The properties of the server that reads depend on. */
export interface ServerKind {
  /** The server is a mongos. Rows of several shards come in order only when they are sorted. */
  readonly isSharded: boolean;
  /** What this kind of server lacks, for the log. Empty when it lacks nothing. */
  readonly warnings: readonly string[];
}

/** What the server is (`hello`). Rejects with MongoRefusal below MongoDB 6.0, else as MongoConnection.run does. */
export async function describeServer(connection: MongoConnection): Promise<ServerKind> {
  const hello = await connection.run({ hello: 1 });
  const version = Number(hello.maxWireVersion);
  if (version < OLDEST_WIRE_VERSION)
    throw foreign(
      `sluice needs MongoDB 6.0 or newer, and this server is older: its wire version is ${version} instead of at least ${OLDEST_WIRE_VERSION}.`,
    );
  const isSharded = hello.msg === 'isdbgrid';
  const isStandalone = !isSharded && hello.setName === undefined;
  return { isSharded, warnings: isStandalone ? [STANDALONE] : [] };
}

const STANDALONE =
  'MongoDB is a standalone server, not a replica set: no other member takes over when it fails, rows that were read can be lost in a crash, and snapshots (consistency=snapshot) are refused. A replica set of one member is enough for snapshots.';

const NO_INDEX = 'an index that no collection has';
/** A time before the oldest that any server keeps. */
const LONG_AGO = 0x1_0000_0001n;

/** What the server makes of a find: the code of its refusal, or whether rows come. */
type Answer = number | 'rows' | 'no rows';

/**
 * Makes sure that the server obeys what reads rely on: servers exist that speak MongoDB's protocol, accept these fields
 * of a find and ignore them, so that a read returns rows outside its range. Asks for what MongoDB must refuse, and for
 * rows where there can be none. `existing` is the description of the collection. When it is missing, only
 * `collectionUUID` is proved, and not behind a router, which answers by itself. Rejects with MongoRefusal, which names
 * the first field that is ignored, else as MongoConnection.run does. Writes nothing.
 */
export async function proveServer(
  connection: MongoConnection,
  collection: string,
  existing: Document | null,
  { isSharded }: ServerKind,
): Promise<void> {
  if (existing && existing.type !== 'collection') return; // it is refused for what it is
  const ask = (part: Document, options?: CommandOptions) =>
    answerTo(connection, { find: collection, limit: 1, singleBatch: true, ...part }, options);
  if (existing || !isSharded)
    demand('collectionUUID', (await ask({ collectionUUID: new UUID() })) === CODES.otherIdentity);
  if (!existing) return;
  const { uuid: collectionUUID } = (existing.info ?? {}) as Document;
  const askThis: typeof ask = async (part, options) => {
    const answer = await ask({ collectionUUID: collectionUUID as unknown, ...part }, options);
    if (answer === CODES.otherIdentity)
      throw storeUnavailable(new Error('the collection was replaced meanwhile'));
    return answer;
  };
  demand('hint', (await askThis({ hint: NO_INDEX })) === CODES.badValue);
  // No row lies behind the last value that an _id can have, and none before the first: no more than one entry is read.
  // A row may have that value itself, and a clustered collection then returns it.
  for (const [bound, beyond] of [
    ['min', new MaxKey()],
    ['max', new MinKey()],
  ] as const) {
    const find = { [bound]: { _id: beyond } };
    demand(bound, (await askThis(find)) === CODES.boundsWithoutHint);
    const others = { hint: { _id: 1 }, filter: { _id: { $ne: beyond } } };
    demand(bound, (await askThis({ ...find, ...others })) !== 'rows');
  }
  const longAgo = await askThis({}, { snapshot: LONG_AGO });
  demand('snapshot (readConcern.atClusterTime)', longAgo !== 'rows');
}

async function answerTo(
  connection: MongoConnection,
  find: Document,
  options: CommandOptions = {},
): Promise<Answer> {
  try {
    const reply = await connection.run(find, { rowsAsBytes: true, ...PRIMARY_FIRST, ...options });
    return rowsOf(reply).rows.length > 0 ? 'rows' : 'no rows';
  } catch (error) {
    const code = serverCodeOf(error);
    if (code === undefined || (error instanceof AppError && !TELLING.has(code))) throw error;
    return code;
  }
}

/** Other errors by the state of the server, or by what this user may not read, prove nothing. */
const TELLING: ReadonlySet<number> = new Set([
  ...[CODES.otherIdentity, CODES.snapshotTooOld, CODES.snapshotUnavailable, CODES.notAReplicaSet],
]);

function demand(field: string, isObeyed: boolean): void {
  if (isObeyed) return;
  throw foreign(
    `The server is not MongoDB: it ignores ${field} in a find, so reads would return rows that they must not.`,
  );
}

function foreign(message: string): MongoRefusal {
  return new MongoRefusal(message, { brief: 'The database server is not MongoDB 6.0 or newer.' });
}
