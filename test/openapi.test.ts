import { Validator } from '@seriousme/openapi-schema-validator';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverOn } from './support/server.ts';

interface Document {
  readonly paths: Record<
    string,
    Record<string, { operationId: string; summary: string; description?: string }>
  >;
}

test('/openapi.json is a valid document of OpenAPI 3.1', async (t) => {
  const server = await serverOn(t, { MONGODB_URI: '' });
  const document = (await (await server.get('/openapi.json')).json()) as Document;
  const { valid, errors } = await new Validator().validate({ ...document });
  assert.ok(valid, JSON.stringify(errors));
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  const ids = operations.map(({ operationId }) => operationId);
  assert.equal(new Set(ids).size, ids.length, 'ids are different');
});
