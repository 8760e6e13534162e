import type { MongoConnection } from './connection.ts';

/** MongoDB 6.0, the first version that accepts `collectionUUID`. */
const IDENTITY_WIRE_VERSION = 17;

/** The properties of the server that reads depend on. */
export interface ServerKind {
  /** The server is a mongos. Rows of several shards come in order only when they are sorted. */
  readonly isSharded: boolean;
  /** Whether a read can name its collection by UUID. */
  readonly hasIdentities: boolean;
  /** What this kind of server lacks, for the log. Empty when it lacks nothing. */
  readonly warnings: readonly string[];
}

/** Asks the server what it is (`hello`). Rejects as MongoConnection.run does. */
export async function describeServer(connection: MongoConnection): Promise<ServerKind> {
  const hello = await connection.run({ hello: 1 });
  const isSharded = hello.msg === 'isdbgrid';
  const hasIdentities = Number(hello.maxWireVersion) >= IDENTITY_WIRE_VERSION;
  const isStandalone = !isSharded && hello.setName === undefined;
  return {
    isSharded,
    hasIdentities,
    warnings: [...(isStandalone ? [STANDALONE] : []), ...(hasIdentities ? [] : [NO_IDENTITIES])],
  };
}

const STANDALONE =
  'MongoDB is a standalone server, not a replica set: no other member takes over when it fails, rows that were read can be lost in a crash, and snapshots (consistency=snapshot) are refused. A replica set of one member is enough for snapshots.';
const NO_IDENTITIES =
  'MongoDB is older than 6.0, so reads cannot name their collection by UUID: a stream whose collection is dropped or replaced does not notice it, and ends as if it were complete.';
