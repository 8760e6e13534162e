import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { Decimal128, type Document } from '../../src/store/bson.ts';
import { cli } from '../support/process/child-server.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { folder } from '../support/pull/pulling.ts';
import { serverOn, testServer, type StoreName, type TestServer } from '../support/process/server.ts';

/** As a spreadsheet in Germany saves it: a byte order mark, semicolons, decimal commas, CRLF. */
const SPREADSHEET =
  '\ufeffArtikel;Bezeichnung;Warengruppe;Preis;PLZ;Kunde.Land;angelegt\r\n' +
  '0815;"Schraube; ""lang""";Eisen;1.234,56;01234;DE;2024-03-01\r\n' +
  '4711;Mutter;Eisen;12,9;12345;;2024-03-02\r\n';

/** Runs `sluice import` as a user does, on the store of a server that runs. */
async function sluiceImport(
  server: TestServer,
  environment: NodeJS.ProcessEnv,
  args: readonly string[],
  input = '',
) {
  const child = spawn(process.execPath, [await cli(), 'import', ...args], {
    env: { ...process.env, MONGODB_URI: '', LOG_LEVEL: 'error', ...environment },
    stdio: ['pipe', 'ignore', 'pipe'],
    timeout: 60_000,
  });
  child.stdin.on('error', () => undefined); // it may end before it has read everything
  child.stdin.end(input);
  const [said, [code]] = await Promise.all([
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { said, code, rows: await rowsOf(server) };
}

/** The rows that a server has. Its first answer after a collection was replaced may be 503. */
async function rowsOf(server: TestServer): Promise<string> {
  let answer = await server.get('/items/stream');
  if (answer.status === 503) answer = await server.get('/items/stream');
  return answer.text();
}

for (const name of ['sqlite', 'mongodb'] satisfies StoreName[])
  describe(`sluice import of a file of a spreadsheet, on ${name}`, () => {
    test('one command imports it, and --drop replaces it, from a file and from a pipe', async (t) => {
      const directory = await folder(t);
      const place = { DATA_DIR: join(directory, 'data') };
      const uri = name === 'sqlite' ? '' : await testMongo(t);
      if (uri === null) return;
      const environment = { ...place, MONGODB_URI: uri };
      const server = await serverOn(t, environment);
      const file = join(directory, 'artikel.csv');
      await writeFile(file, SPREADSHEET);
      const columns = ['--id', 'Artikel', '--category', 'Warengruppe', '--price', 'Preis', '--decimal-comma'];
      const options = [...columns, '--type', 'angelegt=date'];
      const first = await sluiceImport(server, environment, [file, ...options]);
      const expected =
        '{"id":"0815","Bezeichnung":"Schraube; \\"lang\\"","category":"Eisen","price":1234.56,"PLZ":"01234","Kunde":{"Land":"DE"},"angelegt":"2024-03-01T00:00:00.000Z"}\n' +
        '{"id":"4711","Bezeichnung":"Mutter","category":"Eisen","price":12.9,"PLZ":"12345","angelegt":"2024-03-02T00:00:00.000Z"}\n';
      assert.deepEqual([first.code, first.rows], [0, expected], first.said);
      const postponed = /^the indexes are made after the rows; .*\n/;
      assert.equal(postponed.test(first.said), name === 'mongodb');
      assert.equal(
        first.said.replace(postponed, ''),
        'columns:\n' +
          '  Artikel: _id, string ("0815" on line 2 is not an integer)\n' +
          '  Bezeichnung: string ("Schraube; \\"lang\\"" on line 2 is not a number)\n' +
          '  Warengruppe: category, string\n' +
          '  Preis: price, number\n' +
          '  PLZ: string ("01234" on line 2 is not a number as JSON writes it)\n' +
          '  Kunde.Land: string ("DE" on line 2 is not a number)\n' +
          '  angelegt: date\n' +
          'the import finished: 2 rows read, 2 written\n',
      );
      const refused = await sluiceImport(server, environment, [file, ...options, '--drop']);
      assert.deepEqual([refused.code, refused.rows], [2, expected]);
      const bad = await sluiceImport(server, environment, [file, '--drop', '--yes']);
      assert.deepEqual([bad.code, bad.rows], [2, expected]);
      const piped = [...['-', '--format', 'csv'], ...options, '--drop', '--yes'];
      const short = SPREADSHEET.slice(0, SPREADSHEET.indexOf('4711'));
      const again = await sluiceImport(server, environment, piped, short);
      assert.match(again.said, /^removed 2 items from (database|the embedded store) /);
      assert.deepEqual([again.code, again.rows], [0, expected.slice(0, expected.indexOf('\n') + 1)]);
    });

    test('a CSV file that the server wrote comes back as the same documents with --type', async (t) => {
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
      const directory = await folder(t);
      const file = join(directory, 'items.csv');
      await writeFile(file, await (await server.get('/items/stream?format=csv')).text());
      const place = { DATA_DIR: join(directory, 'data') };
      const other = await serverOn(t, { ...place, MONGODB_URI: '' });
      const types = ['--type', 'price=decimal,at=date,own=json'];
      const { code, said, rows } = await sluiceImport(other, place, [file, ...types]);
      assert.equal(code, 0, said);
      assert.equal(rows, await (await server.get('/items/stream')).text());
    });
  });
