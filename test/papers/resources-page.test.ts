import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RESOURCES_FILE_SCHEMA } from '../../src/resources/declarations.ts';
import { KINDS } from '../../src/resources/query/kinds.ts';
import { documentText, firstColumn, section } from '../support/papers/documents.ts';

const PAGE = 'docs/resources.md';

test('docs/resources.md has each member that the reader of RESOURCES_FILE takes, and no other', () => {
  const { resources } = RESOURCES_FILE_SCHEMA.properties;
  const [resource] = Object.values(resources.patternProperties) as { properties: object }[];
  assert.deepEqual(firstColumn(PAGE, 'Members'), Object.keys(resource?.properties ?? {}));
});

test('docs/resources.md has each kind of a field, and its examples have no other members', () => {
  const row = section(PAGE, 'Members')
    .split('\n')
    .find((line) => line.startsWith('| `fields`'));
  const words = [...(row ?? '').matchAll(/`([^`]+)`/g)].map(([, word]) => word);
  assert.deepEqual(words.slice(1), [...KINDS]);
  const blocks = [...documentText(PAGE).matchAll(/```json\n([^]*?)```/g)].map(([, block = '']) => block);
  assert.equal(blocks.length, 4);
  for (const block of blocks) assert.doesNotThrow(() => JSON.parse(block) as unknown, block);
});
