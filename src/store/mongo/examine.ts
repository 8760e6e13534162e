import type { Document } from 'mongodb';
import { reasonOf } from '../../error-reason.ts';
import type { Finding } from '../finding.ts';
import type { Declaration, Found } from '../store.ts';
import { documentsOf, findOne, PRIMARY_FIRST } from './commands.ts';
import { MongoConnection } from './connection.ts';
import { describeCollection, UNMANAGED } from './create-collection.ts';
import { layoutOf, ownCollections } from './discovery.ts';
import { CODES, serverCodeOf } from './errors.ts';
import type { Timestamp } from '../bson.ts';
import { openEvents } from './feed/cursor.ts';
import { placeOfTime } from './feed/place.ts';
import { listCollections } from './open-collection.ts';
import { describeServer, proveServer, type ServerKind } from './proof.ts';
import { pointInTimeOf, presentTime } from './snapshot.ts';

export interface ExamineOptions {
  readonly uri: string;
  readonly prefix?: string | undefined;
  /** Whether a start of the server makes what is missing. */
  readonly manages: boolean;
  /** Whether it also makes indexes of items in a collection that another program has made. */
  readonly adoptsItems: boolean;
}

/** A collection that is served. */
export interface Examined extends Declaration {
  /** Whether some key gets the changes of a part of it, or of some of its fields. */
  readonly needsPreImages: boolean;
}

/** What a promise was seen to be: see Finding. A text: it holds. */
type Seen = Pick<Finding, 'holds' | 'seen'> | string;

const WRITES = ['find', 'insert', 'update', 'remove'];

/**
 * Examines a MongoDB for what the server promises, and writes nothing. Rejects as MongoConnection does when it does not
 * answer at all, and with MongoRefusal for a URI that cannot be used.
 */
export class MongoExamination {
  readonly #connection: MongoConnection;
  readonly #options: ExamineOptions;
  readonly #report: (finding: Finding) => void;

  constructor(options: ExamineOptions, report: (finding: Finding) => void) {
    this.#connection = new MongoConnection(options.uri);
    this.#options = options;
    this.#report = report;
  }

  /** See Store.list. */
  list(database = this.#connection.database): Promise<readonly Found[]> {
    return listCollections(this.#connection.in(database), this.#options.prefix);
  }

  /** Examines the server itself. Resolves with null when it does not answer, or is none that can be used. */
  async server(): Promise<ServerKind | null> {
    const found: { server: ServerKind | null } = { server: null };
    await this.#see('the database is MongoDB 6.0 or newer', 'hello', async () => {
      await this.#connection.connect();
      found.server = await describeServer(this.#connection);
      return 'its wire version says so';
    });
    const { server } = found;
    if (!server) return null;
    await this.#see('snapshots and changes are served', 'hello', () => {
      const [warning] = server.warnings;
      if (warning !== undefined) return { holds: false, seen: warning };
      return server.isSharded ? 'a sharded cluster' : 'a replica set';
    });
    await this.#see('another member takes over when one fails', 'hello', async () => {
      const { hosts = [] } = (await this.#admin({ hello: 1 })) as { readonly hosts?: readonly string[] };
      const isAlone = hosts.length < 2 && !server.isSharded;
      return isAlone ? { holds: null, seen: 'there is no other member' } : hosts.join(', ');
    });
    return server;
  }

  /** Examines the rights of the user, the collections and how long the past is kept. */
  async collections(collections: readonly Examined[], server: ServerKind): Promise<void> {
    const isReplicated = server.warnings.length === 0;
    await this.#rights(collections);
    for (const one of collections) await this.#collection(one, server, isReplicated);
    if (!isReplicated) return;
    await this.#see('snapshots last for a minute or more', 'getParameter', async () => {
      const name = 'minSnapshotHistoryWindowInSeconds';
      const { [name]: seconds } = await this.#admin({ getParameter: 1, [name]: 1 });
      return { holds: Number(seconds) >= 60, seen: `${name} is ${String(seconds)}` };
    });
    await this.#see('changes can be read from the past', 'find in local.oplog.rs', () => this.#oplog());
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #rights(collections: readonly Examined[]): Promise<void> {
    const { authInfo } = (await this.#admin({ connectionStatus: 1, showPrivileges: true })) as {
      readonly authInfo: {
        readonly authenticatedUsers: readonly unknown[];
        readonly authenticatedUserPrivileges: readonly Privilege[];
      };
    };
    const isOpen = authInfo.authenticatedUsers.length === 0;
    const { database } = this.#connection;
    const [users = '', ...files] = ownCollections(this.#options.prefix);
    const needs: [string, string, readonly string[], readonly string[]][] = [
      ['users can be read and written', database, [users], WRITES],
      ['exports can be ordered', database, files, [...WRITES, 'createIndex']],
      ...collections.map((one): [string, string, readonly string[], readonly string[]] => [
        `/${one.name} can be read`,
        one.database ?? database,
        [one.collection],
        ['find', 'listIndexes', 'listCollections', 'changeStream'],
      ]),
    ];
    for (const [promise, db, names, actions] of needs)
      await this.#see(promise, 'connectionStatus', () => {
        if (isOpen) return 'no user: this MongoDB has no access control';
        const missing = actions.filter(
          (action) => !names.every((name) => allows(authInfo.authenticatedUserPrivileges, db, name, action)),
        );
        const on = names.map((name) => `${db}.${name}`).join(', ');
        return missing.length === 0
          ? `the user has ${actions.join(', ')} on ${on}`
          : { holds: false, seen: `the user lacks ${missing.join(', ')} on ${on}` };
      });
  }

  async #collection(one: Examined, server: ServerKind, isReplicated: boolean): Promise<void> {
    const connection = one.database === undefined ? this.#connection : this.#connection.in(one.database);
    const { collection, needsPreImages } = one;
    const path = `/${one.name}`;
    const seen: { existing: Document | null } = { existing: null };
    await this.#see(`${path} has its collection`, 'listCollections', async () => {
      const existing = (seen.existing = await describeCollection(connection, collection));
      const made = one.create && this.#options.manages ? ': the first start of the server makes it' : '';
      const name = `${connection.database}.${collection}`;
      return existing ? name : { holds: false, seen: `${name} is missing${made}` };
    });
    await this.#see(
      `${path} is read inside its bounds`,
      'find with collectionUUID, hint, min, max',
      async () => {
        await proveServer(connection, collection, seen.existing, server);
        return 'they are obeyed, and refused where they are wrong';
      },
    );
    const { existing } = seen;
    if (!existing) return;
    const { manages, adoptsItems: adopts } = this.#options;
    const options = {
      ...{ collection, indexes: one.indexes, create: one.create, adopts, manage: false },
      unmanaged: manages ? 'a start of the server tries to make it' : UNMANAGED,
      onWarning: (seen: string) => this.#report({ promise: `${path} stays readable`, holds: null, seen }),
    };
    let identity: string | undefined;
    await this.#see(
      `${path} has an index for each order that is declared`,
      'listIndexes, explain',
      async () => {
        const { indexes, faults, ...layout } = await layoutOf(
          connection,
          options,
          existing,
          server.isSharded,
        );
        identity = layout.identity;
        if (faults.length > 0) return { holds: false, seen: faults.join('; ') };
        return indexes.flatMap(({ name, refused }) => (refused === undefined ? [name] : [])).join(', ');
      },
    );
    if (!isReplicated) return;
    await this.#see(`${path} has snapshots`, 'find with readConcern snapshot', async () => {
      const time = await presentTime(connection, collection, identity, AbortSignal.timeout(10_000));
      return time === null
        ? { holds: false, seen: 'they are refused' }
        : 'a row at a time that the server chose';
    });
    await this.#see(`${path} has changes`, 'aggregate with $changeStream', async () => {
      const { operationTime } = await connection.run(findOne(collection, identity));
      const from = placeOfTime(pointInTimeOf(operationTime as Timestamp));
      const request = { collections: [collection], from, batch: 1 };
      const stream = await openEvents(connection, request, AbortSignal.timeout(10_000));
      await stream.close();
      return 'a stream was opened, and closed again';
    });
    await this.#see(`${path} has changes for keys that open a part`, 'listCollections', () => {
      const { changeStreamPreAndPostImages: images } = (existing.options ?? {}) as Document;
      if ((images as Document | undefined)?.enabled === true)
        return 'changeStreamPreAndPostImages is enabled';
      const seen = `no pre-images${needsPreImages ? '' : ', and no key needs them'}: db.runCommand({collMod: ${JSON.stringify(collection)}, changeStreamPreAndPostImages: {enabled: true}})`;
      return { holds: needsPreImages ? false : null, seen };
    });
  }

  async #oplog(): Promise<Seen> {
    const local = this.#connection.in('local');
    const end = async (sign: 1 | -1): Promise<number> => {
      const find = { find: 'oplog.rs', sort: { $natural: sign }, limit: 1, projection: { ts: 1 } };
      const [entry] = await documentsOf(local, { ...find, singleBatch: true }, PRIMARY_FIRST);
      return (entry?.ts as Timestamp | undefined)?.t ?? 0;
    };
    const hours = ((await end(-1)) - (await end(1))) / 3600;
    return `its entries are of the last ${hours.toFixed(1)} hours; a busy or young server has fewer`;
  }

  #admin(command: Document): Promise<Document> {
    return this.#connection.in('admin').run(command, PRIMARY_FIRST);
  }

  /** Reports a promise by a look. One that this user may not have is not seen. */
  async #see(promise: string, query: string, look: () => Seen | Promise<Seen>): Promise<void> {
    let result: Seen;
    try {
      result = await look();
    } catch (error) {
      const cause = (error as Error).cause ?? error;
      const denied = serverCodeOf(error) ?? serverCodeOf(cause);
      result = { holds: denied === CODES.unauthorized ? null : false, seen: reasonOf(cause) };
    }
    const { holds, seen } = typeof result === 'string' ? { holds: true, seen: result } : result;
    this.#report({ promise, holds, seen: `${query}: ${seen}` });
  }
}

/** What a role of MongoDB permits. Empty names stand for every one. */
interface Privilege {
  readonly resource: {
    readonly db?: string;
    readonly collection?: string;
    readonly anyResource?: boolean;
  };
  readonly actions: readonly string[];
}

function allows(
  privileges: readonly Privilege[],
  database: string,
  collection: string,
  action: string,
): boolean {
  return privileges.some(
    ({ resource: { db, collection: name, anyResource = false }, actions }) =>
      actions.includes(action) &&
      (anyResource || ((db === '' || db === database) && (name === '' || name === collection))),
  );
}
