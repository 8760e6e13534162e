import type { Document } from 'mongodb';
import { reasonOf } from '../../../base/error-reason.ts';
import type { Timestamp } from '../../values/bson.ts';
import type { Finding } from '../../../base/finding.ts';
import type { Declaration, Store } from '../../store.ts';
import { documentsOf, PRIMARY_FIRST } from '../commands.ts';
import { MongoConnection } from '../connection.ts';
import { describeCollection, UNMANAGED } from './create-collection.ts';
import { layoutOf, ownCollections } from './discovery.ts';
import { CODES, serverCodeOf } from '../errors.ts';
import { listCollections } from './collections.ts';
import { describeServer, proveServer, type ServerKind } from './proof.ts';

export interface ExamineOptions {
  readonly uri: string;
  readonly prefix?: string | undefined;
  /** Whether a start of the server makes what is missing. */
  readonly manages: boolean;
  /** Whether it also makes indexes of items in a collection that another program has made. */
  readonly adoptsItems: boolean;
  /** Whether users are served, and so the records of the server itself. Exports are ordered where they can be. */
  readonly keepsRecords: boolean;
  /** Whether editions are declared, and so their records. */
  readonly keepsEditions: boolean;
  /** Which collections of this store are served. */
  readonly served: (store: Pick<Store, 'list'>) => Promise<readonly ExaminedDeclaration[]>;
}

export interface ExaminedDeclaration extends Declaration {
  /** Whether some key gets the changes of a part of it, or of some of its fields. */
  readonly needsPreImages: boolean;
  readonly hasEditions: boolean;
}

/** What a promise was seen to be: see Finding. A text: it holds. */
type Observation = Pick<Finding, 'holds' | 'seen'> | string;

/** Reports a promise by a look. One that this user may not have is not seen. */
type Observe = (
  promise: string,
  query: string,
  look: () => Observation | Promise<Observation>,
) => Promise<void>;

const failed = (seen: string): Observation => ({ holds: false, seen });

/** Examines a MongoDB, also when it does not answer. Writes nothing. Rejects with MongoRefusal for an unusable URI. */
export async function examineMongo(options: ExamineOptions, report: (finding: Finding) => void) {
  const connection = new MongoConnection(options.uri);
  const see: Observe = async (promise, query, look) => {
    let result: Observation;
    try {
      result = await look();
    } catch (error) {
      const cause = (error as Error).cause ?? error;
      const isDenied = (serverCodeOf(error) ?? serverCodeOf(cause)) === CODES.unauthorized;
      result = { holds: isDenied ? null : false, seen: briefOf(reasonOf(cause)) };
    }
    const { holds, seen } = typeof result === 'string' ? { holds: true, seen: result } : result;
    report({ promise, holds, seen: `${query}: ${seen}` });
  };
  try {
    const server = await examineServer(connection, see);
    if (!server) return;
    const list: Store['list'] = async (database = connection.database) => ({
      collections: await listCollections(connection.in(database), options.prefix),
    });
    const collections = await servedIn(options, list, see);
    if (!collections) return;
    await examineRights(connection, options, collections, see);
    for (const one of collections) await examineCollection(connection, options, one, server, see, report);
    if (server.warnings.length === 0) await examineHistory(connection, see);
  } finally {
    await connection.close();
  }
}

/** The collections that are served. Null: they cannot be listed, without which nothing is served. */
async function servedIn(
  { served }: Pick<ExamineOptions, 'served'>,
  list: Store['list'],
  see: Observe,
): Promise<readonly ExaminedDeclaration[] | null> {
  const found: { collections: readonly ExaminedDeclaration[] | null } = { collections: null };
  await see('the collections can be listed', 'listCollections', async () => {
    try {
      found.collections = await served({ list });
      return 'the user may list them';
    } catch (error) {
      return failed(briefOf(reasonOf((error as Error).cause ?? error)));
    }
  });
  return found.collections;
}

/** What MongoDB refuses, without the command as it was sent: that has ids of sessions and signatures. */
function briefOf(reason: string): string {
  const [, database = '', command = ''] =
    /^not authorized on (\S+) to execute command \{ (\w+)/.exec(reason) ?? [];
  return database === '' ? reason : `the user may not run ${command} on the database ${database}`;
}

function admin(connection: MongoConnection, command: Document): Promise<Document> {
  return connection.in('admin').run(command, PRIMARY_FIRST);
}

/** Resolves with null when the server does not answer, or is none that can be used. */
async function examineServer(connection: MongoConnection, see: Observe): Promise<ServerKind | null> {
  const found: { server: ServerKind | null } = { server: null };
  await see('the database is MongoDB 6.0 or newer', 'hello', async () => {
    await connection.connect();
    found.server = await describeServer(connection);
    return 'its wire version says so';
  });
  const { server } = found;
  if (!server) return null;
  const { isSharded, warnings } = server;
  await see('snapshots and changes are served', 'hello', () => {
    if (warnings[0] !== undefined) return { holds: null, seen: warnings[0] };
    return isSharded ? 'a sharded cluster' : 'a replica set';
  });
  await see('another member takes over when one fails', 'hello', async () => {
    const { hosts = [] } = (await admin(connection, { hello: 1 })) as { readonly hosts?: readonly string[] };
    const isAlone = hosts.length < 2 && !isSharded;
    return isAlone ? { holds: null, seen: 'there is no other member' } : hosts.join(', ');
  });
  return server;
}

const WRITES = ['find', 'insert', 'update', 'remove'];
const READS = ['find', 'listIndexes'];
const CHANGES = ['find', 'changeStream'];

/** What a role of MongoDB permits. Empty names stand for every one. */
interface Privilege {
  readonly resource: {
    readonly db?: string;
    readonly collection?: string;
    readonly anyResource?: boolean;
  };
  readonly actions: readonly string[];
}

async function examineRights(
  connection: MongoConnection,
  { prefix, keepsRecords, keepsEditions }: ExamineOptions,
  collections: readonly ExaminedDeclaration[],
  see: Observe,
): Promise<void> {
  const { authInfo } = await admin(connection, { connectionStatus: 1, showPrivileges: true });
  const { authenticatedUsers: users, authenticatedUserPrivileges: privileges } = authInfo as {
    readonly authenticatedUsers: readonly unknown[];
    readonly authenticatedUserPrivileges: readonly Privilege[];
  };
  const [ofUsers = '', exports = '', files = '', chunks = '', editions = ''] = ownCollections(prefix);
  const { database: own } = connection;
  const otherwise = keepsRecords ? false : null;
  const ofUsersToo = keepsRecords
    ? ([['users can be read and written', own, [ofUsers], WRITES, false]] as const)
    : [];
  const ofEditions = keepsEditions
    ? ([['editions can be made and leased', own, [editions], WRITES, false]] as const)
    : [];
  const ofResources = collections.flatMap(
    ({ name, database = own, collection, hasEditions }) =>
      [
        [`/${name} can be read`, database, [collection], READS, false],
        [`/${name} has changes`, database, [collection], CHANGES, hasEditions ? false : null],
      ] as const,
  );
  for (const [promise, database, names, wanted, lacking] of [
    ...ofUsersToo,
    ['exports can be ordered', own, [exports, files, chunks], [...WRITES, 'createIndex'], otherwise] as const,
    ...ofEditions,
    ...ofResources,
  ])
    await see(promise, 'connectionStatus', () => {
      if (users.length === 0) return 'no user: this MongoDB has no access control';
      const may = (action: string) => (name: string) =>
        privileges.some(
          ({ resource: { db, collection, anyResource = false }, actions }) =>
            actions.includes(action) &&
            (anyResource || ((db === '' || db === database) && (collection === '' || collection === name))),
        );
      const missing = wanted.filter((action) => !names.every(may(action)));
      const on = names.map((name) => `${database}.${name}`).join(', ');
      return missing.length === 0
        ? `the user has ${wanted.join(', ')} on ${on}`
        : { holds: lacking, seen: `the user lacks ${missing.join(', ')} on ${on}` };
    });
}

async function examineCollection(
  ofStore: MongoConnection,
  { manages, adoptsItems: adopts }: ExamineOptions,
  { name, database, collection, indexes, create, needsPreImages, hasEditions }: ExaminedDeclaration,
  server: ServerKind,
  see: Observe,
  report: (finding: Finding) => void,
): Promise<void> {
  const connection = database === undefined ? ofStore : ofStore.in(database);
  const path = `/${name}`;
  const found: { existing: Document | null } = { existing: null };
  await see(`${path} has its collection`, 'listCollections', async () => {
    found.existing = await describeCollection(connection, collection);
    const fullName = `${connection.database}.${collection}`;
    const made = create && manages ? ': the first start of the server makes it' : '';
    return found.existing ? fullName : failed(`${fullName} is missing${made}`);
  });
  const { existing } = found;
  await see(`${path} is read inside its bounds`, 'find with collectionUUID, hint, min, max', async () => {
    await proveServer(connection, collection, existing, server);
    return 'they are obeyed, and refused where they are wrong';
  });
  if (!existing) return;
  const options = {
    collection,
    indexes,
    create,
    adopts,
    manage: false,
    unmanaged: manages ? 'a start of the server tries to make it' : UNMANAGED,
    onWarning: (seen: string) => report({ promise: `${path} stays readable`, holds: null, seen }),
  };
  await see(`${path} has an index for each order that is declared`, 'listIndexes, explain', async () => {
    const layout = await layoutOf(connection, options, existing, server.isSharded);
    if (layout.faults.length > 0) return failed(layout.faults.join('; '));
    return layout.indexes.flatMap((one) => (one.refused === undefined ? [one.name] : [])).join(', ');
  });
  const [standalone] = server.warnings;
  if (hasEditions)
    await see(`${path} has the changes that its editions are made of`, 'hello', () =>
      standalone === undefined ? 'changes are served' : failed(standalone),
    );
  if (server.warnings.length > 0) return;
  await see(`${path} has changes for keys that open a part`, 'listCollections', () => {
    const { changeStreamPreAndPostImages: images } = (existing.options ?? {}) as Document;
    if ((images as Document | undefined)?.enabled === true) return 'changeStreamPreAndPostImages is enabled';
    const seen = `no pre-images${needsPreImages ? '' : ', and no key needs them'}: db.getSiblingDB(${JSON.stringify(connection.database)}).runCommand({collMod: ${JSON.stringify(collection)}, changeStreamPreAndPostImages: {enabled: true}})`;
    return { holds: needsPreImages ? false : null, seen };
  });
}

/** How long snapshots and changes are kept. */
async function examineHistory(connection: MongoConnection, see: Observe): Promise<void> {
  await see('snapshots last for a minute or more', 'getParameter', async () => {
    const name = 'minSnapshotHistoryWindowInSeconds';
    const { [name]: seconds } = await admin(connection, { getParameter: 1, [name]: 1 });
    return { holds: Number(seconds) >= 60, seen: `${name} is ${String(seconds)}` };
  });
  await see('changes can be read from the past', 'find in local.oplog.rs', async () => {
    const end = async (sign: 1 | -1): Promise<number> => {
      const find = { find: 'oplog.rs', sort: { $natural: sign }, limit: 1, projection: { ts: 1 } };
      const [entry] = await documentsOf(
        connection.in('local'),
        { ...find, singleBatch: true },
        PRIMARY_FIRST,
      );
      return (entry?.ts as Timestamp | undefined)?.t ?? 0;
    };
    const hours = ((await end(-1)) - (await end(1))) / 3600;
    return `its entries are of the last ${hours.toFixed(1)} hours; a busy or young server has fewer`;
  });
}
