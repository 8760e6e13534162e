import { Ajv2020 } from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { EditionHead, ChunkEntry } from '../../src/base/edition/head.ts';
import { indexTree } from '../../src/base/edition/index-tree.ts';
import { itemEditions } from '../support/editions/edition-server.ts';

interface Operation {
  readonly responses: Readonly<
    Record<string, { readonly headers?: object; readonly content?: Readonly<Record<string, unknown>> }>
  >;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

test('heads and index files are what /openapi.json says of them, with its headers', async (t) => {
  const at = await itemEditions(t, 'sqlite', { formats: ['ndjson.gz', 'parquet'] });
  if (!at) return;
  const { server } = at;
  const document = (await (await server.get('/openapi.json')).json()) as Document;
  const ajv = new Ajv2020({ strict: false, validateFormats: false, meta: false, validateSchema: false });
  ajv.addSchema(document, 'document');
  const pointer = (path: string) => `document#/paths/${encodeURIComponent(path.replaceAll('/', '~1'))}`;
  const check = (path: string, value: unknown): void => {
    const validate = ajv.compile({
      $ref: `${pointer(path)}/get/responses/200/content/application~1json/schema`,
    });
    assert.ok(validate(value), `${path}: ${ajv.errorsText(validate.errors)}`);
  };
  const ask = async (path: string, documented: string): Promise<unknown> => {
    const answer = await server.get(path, { range: 'bytes=-20' });
    assert.equal(answer.status, 200, `${path}: a part of JSON is none`);
    const { headers = {} } = document.paths[documented]?.get?.responses['200'] ?? {};
    for (const name of ['ETag', 'Cache-Control']) {
      assert.ok(name in headers, `${documented} documents ${name}`);
      assert.ok(answer.headers.get(name), `${path} has ${name}`);
    }
    const value: unknown = await answer.json();
    check(documented, value);
    return value;
  };
  const first = (await ask('/items/edition', '/items/edition')) as EditionHead;
  assert.match(first.schema ?? '', /^[0-9a-f]{16}$/);
  await at.remove('row-000000');
  const head = await at.publish();
  assert.equal(head.deltas.length, 1);
  await ask('/items/edition', '/items/edition');
  await ask(`/items/edition/${first.edition}`, '/items/edition/{name}');
  for (const { name } of head.index) await ask(`/items/chunks/${name}.index.json`, '/items/chunks/{file}');
  const [entry] = await at.chunks(head);
  assert.ok(entry);
  const many = Array.from({ length: 80_000 }, (_, n): ChunkEntry => {
    return { ...entry, name: createHash('sha256').update(String(n)).digest('hex') };
  });
  const files = [...indexTree(many).files.values()].map(
    (bytes) => JSON.parse(Buffer.from(bytes).toString()) as object,
  );
  const above = files.filter((file) => !('chunks' in file));
  assert.ok(above.length > 0);
  for (const file of above) check('/items/chunks/{file}', file);
});
