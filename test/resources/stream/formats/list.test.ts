import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FORMATS } from '../../../../src/resources/stream/formats/list.ts';
import { awaited, exportRows, fileOf, order } from '../../../support/exports/exports.ts';
import { testServer } from '../../../support/process/server.ts';

const API = readFileSync(join(import.meta.dirname, '../../../../docs/api.md'), 'utf8');

interface Document {
  readonly paths: Readonly<
    Record<string, { get?: { responses: Record<string, { content?: Record<string, unknown> }> } }>
  >;
}

test('each format in the list is streamed, negotiated, exported and documented', async (t) => {
  const server = await testServer(t, 'sqlite', 'uws');
  await server.insert(exportRows(10));
  const { paths } = (await (await server.get('/openapi.json')).json()) as Document;
  const contentOf = (path: string) => Object.keys(paths[path]?.get?.responses['200']?.content ?? {});
  const page = await (await server.get('/')).text();
  for (const { name, types, contentType, extension, isFileOnly, whyNot } of FORMATS) {
    assert.ok(API.includes(`\`${name}\``), `docs/api.md does not name ${name}`);
    assert.ok(page.includes(`<option>${name}</option>`), name);
    assert.ok(contentOf('/exports/{id}/file').includes(types[0]), name);
    const asked = await server.get(`/items/stream?format=${name}&fields=price`);
    const rows = Buffer.from(await asked.arrayBuffer());
    assert.equal(asked.status, isFileOnly ? 400 : 200, name);
    for (const type of isFileOnly ? [] : types) {
      const negotiated = await server.get('/items/stream?fields=price', { accept: type });
      assert.ok(negotiated.headers.get('content-type')?.startsWith(type), type);
      assert.deepEqual(Buffer.from(await negotiated.arrayBuffer()), rows, type);
      assert.ok(contentOf('/items/stream').includes(type), type);
    }
    if (whyNot?.()) continue;
    const { id } = await order(server.url, { format: name, fields: ['price'] });
    const done = await awaited(server.url, id);
    assert.ok(done.file?.name.endsWith(`.${extension}`), name);
    assert.equal((await server.get(done.file?.url ?? '')).headers.get('content-type'), contentType);
    const bytes = await fileOf(server.url, done);
    // The checkpoints of a table of Arrow have cursors in streams only.
    if (contentType.startsWith('text/') || name.endsWith('json')) assert.deepEqual(bytes, rows, name);
  }
});
