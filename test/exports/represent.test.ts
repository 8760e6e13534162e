import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newJob, type ExportRequest } from '../../src/exports/job.ts';
import { exportsToJson, exportToJson } from '../../src/exports/represent.ts';
import { openForm } from '../../src/resources/query/form.ts';
import { ITEM_FORM } from '../../src/resources/items.ts';

const PRICE = '0.10000000000000000000001';
const request: ExportRequest = {
  resource: 'items',
  query: `min_price=${PRICE}&category=%22min_price%22%3A%227%22&sort=price_asc`,
  format: 'ndjson',
  compression: 'none',
};
const job = newJob('0'.repeat(32), 'ada', request, new Date(0));

const shown = (text: string) => /"request":(\{.*?\})/.exec(text)?.[1];
const withPrice = (price: string) =>
  `{"resource":"items","min_price":${price},"category":"\\"min_price\\":\\"7\\"","sort":"price_asc","format":"ndjson","compression":"none"}`;

test('an order is shown with its resource, and with the digits of its numbers as its form has them', () => {
  assert.equal(shown(exportToJson(job, ITEM_FORM, '')), withPrice(PRICE));
  for (const form of [openForm('items'), undefined])
    assert.equal(shown(exportToJson(job, form, '')), withPrice(`"${PRICE}"`), 'no parameter is a number');
  assert.equal(shown(exportsToJson([job], new Map(), '')), withPrice(`"${PRICE}"`), 'it is no longer served');
});
