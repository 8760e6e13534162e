/**
 * The limit of an import into MongoDB: the driver's insertMany of objects in memory into an empty collection, and then
 * the indexes of the items. The time in which the objects are made does not count.
 */
import { MongoClient } from 'mongodb';
import { SyntheticItems } from '../../src/import/synthetic.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { answerRows } from './written.ts';

const ROWS_PER_INSERT = 10_000;

const client = await new MongoClient(process.env.MONGODB_URI ?? '').connect();
const indexes = (await client.db().collection('items').indexes())
  .filter(({ name }) => name !== '_id_')
  .map(({ key }) => ({ key: key as Record<string, 1 | -1> }));

await answerRows(async (rows) => {
  const database = client.db(`sluice_bench_insert_${process.pid}`);
  const collection = database.collection('items');
  const items = new SyntheticItems(1);
  let bytes = 0;
  let ms = 0;
  const timed = async (work: () => Promise<unknown>): Promise<void> => {
    const started = performance.now();
    await work();
    ms += performance.now() - started;
  };
  for (let left = rows; left > 0; left -= ROWS_PER_INSERT) {
    const documents = Array.from({ length: Math.min(left, ROWS_PER_INSERT) }, () => {
      const row = items.next();
      bytes += row.length;
      return BSON.deserialize(row);
    });
    await timed(() => collection.insertMany(documents, { ordered: false }));
  }
  await timed(() => collection.createIndexes(indexes));
  const written = await collection.estimatedDocumentCount();
  await database.dropDatabase();
  return { rows: written, bytes, seconds: ms / 1000 };
});
await client.close();
