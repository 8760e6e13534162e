import type { MongoConnection } from './connection.ts';

/** MongoDB 6.0: the first that takes `collectionUUID`. */
const IDENTITY_WIRE_VERSION = 17;

/** What the server behind a connection is, as far as reads depend on it. */
export interface ServerKind {
  /** It is a mongos: rows of several shards come in order only when they are sorted. */
  readonly isSharded: boolean;
  /** Whether a read can name the collection that it means by its UUID. */
  readonly hasIdentities: boolean;
  /** What is lost with a server of this kind, for the log; empty when nothing is. */
  readonly warnings: readonly string[];
}

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
  'MongoDB runs as a single server, not as a replica set. No other member takes over when it fails, rows that were read can be lost in a crash, and snapshots (consistency=snapshot) are refused. A replica set of one member is enough for snapshots.';
const NO_IDENTITIES =
  'MongoDB is older than 6.0, so that reads cannot say which collection they mean: a stream does not notice when its collection is dropped or replaced, and ends as if it were whole.';
