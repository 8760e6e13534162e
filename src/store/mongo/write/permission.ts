import { AppError } from '../../../base/errors.ts';
import type { MongoConnection } from '../connection.ts';

/** A privilege as connectionStatus shows it. */
interface Privilege {
  readonly resource: { readonly db?: string; readonly collection?: string; readonly anyResource?: boolean };
  readonly actions: readonly string[];
}

interface Status {
  readonly authInfo: {
    readonly authenticatedUsers: readonly unknown[];
    readonly authenticatedUserPrivileges?: readonly Privilege[];
  };
}

/** What records need, beside reading. */
const NEEDED = ['insert', 'update', 'remove'];

/**
 * Whether the user of the connection may write a collection of its database. True without authentication, and while the
 * server does not answer.
 */
export async function mayWrite(connection: MongoConnection, collection: string): Promise<boolean> {
  let status: Status;
  try {
    status = (await connection.run({ connectionStatus: 1, showPrivileges: true })) as unknown as Status;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return true;
  }
  const { authenticatedUsers, authenticatedUserPrivileges = [] } = status.authInfo;
  if (authenticatedUsers.length === 0) return true;
  const may = new Set(
    authenticatedUserPrivileges
      .filter((one) => covers(one, connection.database, collection))
      .flatMap(({ actions }) => actions),
  );
  return NEEDED.every((action) => may.has(action));
}

/** An empty name stands for all but those of the system, and for the databases of it, neither of which records are in. */
function covers({ resource }: Privilege, database: string, collection: string): boolean {
  const { db, collection: of, anyResource } = resource;
  if (anyResource === true) return true;
  return (db === database || db === '') && (of === collection || of === '');
}
