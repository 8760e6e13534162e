import type { ClientSession, Document, MongoClient } from 'mongodb';
import type { Store } from '../../../../src/store/store.ts';
import type { ModelSet } from '../../../contracts/changes.model.contract.ts';
import { MONGO_IDS, VALUES } from '../feed-ids.ts';
import type { ModelRow } from '../model-rows.ts';

const INDEXES = [{ key: { status: 1, _id: 1 }, name: 'status_1__id_1' }];

/** Sets of a database, each with writers through the driver alone. */
export async function mongoSets(store: Store, client: MongoClient, count: number): Promise<ModelSet[]> {
  const db = client.db();
  const create = async (name: string) => {
    await db.createCollection(name, { changeStreamPreAndPostImages: { enabled: true } });
    await db.command({ createIndexes: name, indexes: INDEXES });
  };
  return Promise.all(
    Array.from({ length: count }, async (_, n): Promise<ModelSet> => {
      const name = `rows${n}`;
      await create(name);
      const rows = await store.open({ name, collection: name, indexes: [['status']] });
      return {
        ...{
          rows,
          field: 'status',
          values: VALUES,
          ids: MONGO_IDS,
          replacesOtherTypes: false,
          fewestSteps: 3,
        },
        write: async (removed, put, random) => {
          const commands = commandsFor(name, removed, put);
          const isTransaction = removed.length + put.length >= 2 && random() < 0.4;
          const writeConcern = { w: random() < 0.3 ? 'majority' : 1 };
          if (isTransaction) await transact(client, commands);
          else for (const command of commands) await db.command({ ...command, writeConcern });
        },
        replace: async (random) => {
          await create(`other${n}`);
          const isDropped = random() < 0.5; // there is none for a moment
          if (isDropped) await db.dropCollection(name);
          await db.renameCollection(`other${n}`, name, { dropTarget: !isDropped });
        },
        // What a majority has is followed by what was written before.
        settle: async () => {
          await db.command({ insert: 'settled', documents: [{}], writeConcern: { w: 'majority' } });
        },
      };
    }),
  );
}

function commandsFor(
  name: string,
  removed: readonly unknown[],
  put: readonly ModelRow[],
): readonly Document[] {
  const deletes = removed.map((_id) => ({ q: { _id: { $eq: _id } }, limit: 1 }));
  const updates = put.map((row) => ({ q: { _id: { $eq: row._id } }, u: row, upsert: true }));
  return [
    ...(deletes.length > 0 ? [{ delete: name, deletes }] : []),
    ...(updates.length > 0 ? [{ update: name, updates }] : []),
  ];
}

function transact(client: MongoClient, commands: readonly Document[]): Promise<void> {
  return client.withSession((session: ClientSession) =>
    session.withTransaction(async () => {
      for (const command of commands) await client.db().command(command, { session });
    }),
  );
}
