import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Decimal128, type Document } from '../../src/store/bson.ts';
import { sluice } from '../support/process/commands.ts';
import { serverOn, testServer, type StoreName } from '../support/process/server.ts';
import { temporaryFolder } from '../support/directory.ts';

for (const name of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`a CSV file that a server on ${name} wrote comes back as the same documents with --type`, async (t) => {
    const server = await testServer(t, name, 'uws');
    if (!server) return;
    const documents: Document[] = [
      {
        _id: 'a',
        category: 'c',
        price: Decimal128.fromString('1.50'),
        at: new Date(5),
        own: { list: [1, { x: 'y' }] },
      },
      { _id: 'b', category: 'c', price: Decimal128.fromString('2'), at: new Date(1.7e12), zip: '01234' },
    ];
    await server.insert(documents);
    const directory = await temporaryFolder(t);
    const file = join(directory, 'items.csv');
    await writeFile(file, await (await server.get('/items/stream?format=csv')).text());
    const place = { DATA_DIR: join(directory, 'data') };
    const other = await serverOn(t, { ...place, MONGODB_URI: '' });
    const types = ['--type', 'price=decimal,at=date,own=json'];
    const { code, said } = await sluice(['import', file, ...types], place);
    assert.equal(code, 0, said);
    assert.equal(
      await (await other.get('/items/stream')).text(),
      await (await server.get('/items/stream')).text(),
    );
  });
