import type { MongoConnection } from './connection.ts';
import { ForeignServer } from './errors.ts';

/** MongoDB 6.0, the first version that accepts `collectionUUID`. */
const OLDEST_WIRE_VERSION = 17;

/** The properties of the server that reads depend on. */
export interface ServerKind {
  /** The server is a mongos. Rows of several shards come in order only when they are sorted. */
  readonly isSharded: boolean;
  /** What this kind of server lacks, for the log. Empty when it lacks nothing. */
  readonly warnings: readonly string[];
}

/**
 * Asks the server what it is (`hello`). Rejects with ForeignServer when it is older than MongoDB 6.0, else as
 * MongoConnection.run does.
 */
export async function describeServer(connection: MongoConnection): Promise<ServerKind> {
  const hello = await connection.run({ hello: 1 });
  const version = Number(hello.maxWireVersion);
  if (version < OLDEST_WIRE_VERSION)
    throw new ForeignServer(
      `sluice needs MongoDB 6.0 or newer, and this server is older: its wire version is ${version} instead of at least ${OLDEST_WIRE_VERSION}.`,
    );
  const isSharded = hello.msg === 'isdbgrid';
  const isStandalone = !isSharded && hello.setName === undefined;
  return { isSharded, warnings: isStandalone ? [STANDALONE] : [] };
}

const STANDALONE =
  'MongoDB is a standalone server, not a replica set: no other member takes over when it fails, rows that were read can be lost in a crash, and snapshots (consistency=snapshot) are refused. A replica set of one member is enough for snapshots.';
