import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { parseTypesArguments, runTypes } from '../../src/typescript/command.ts';
import { typesOf } from '../../src/typescript/row-types.ts';
import { scriptedServer } from '../support/pull/pulling.ts';

test('no name that a server gives becomes code of the module', async (t) => {
  for (const name of ['a */ process.exit(1) /*', 'a\nb', '', '--']) {
    const document = { components: { schemas: { Row: { 'x-resource': name, type: 'object' } } } };
    const answer = JSON.stringify(document);
    const { url } = await scriptedServer(t, [
      (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(answer),
    ]);
    const stdout = new PassThrough();
    const stderr = new PassThrough();
    const io = { stdout, stderr, signal: new AbortController().signal };
    assert.equal(await runTypes(parseTypesArguments([new URL('/', url).href]), io), 1, name);
    assert.match(String(stderr.read()), /a name that is none/);
    assert.equal(stdout.read(), null);
  }
  const odd = '"; process.exit(1) //';
  const types = typesOf(new Map([['a', { properties: { [odd]: { type: 'string' } } }]]), 'http://a.example');
  assert.ok(types.includes(`  ${JSON.stringify(odd)}?: string;`));
});
