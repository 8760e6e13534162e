import assert from 'node:assert/strict';
import { test } from 'node:test';
import type * as Declared from '../../clients/javascript/sluice-types.d.ts';
import * as client from '../../clients/javascript/sluice.ts';

/** What the compiler accepts, because the two are the same. */
type Client = Pick<typeof client, 'rows' | 'follow' | 'download' | 'edition'>;
type Types = Pick<typeof Declared, 'rows' | 'follow' | 'download' | 'edition'>;

test('the types that are handed out are those of the client', () => {
  const declared: Types = client;
  const own: Client = declared;
  assert.deepEqual(Object.keys(client).sort(), ['SluiceError', 'download', 'edition', 'follow', 'rows']);
  const asDeclared = (failure: client.SluiceError): Pick<Declared.SluiceError, 'name' | 'status'> => failure;
  assert.ok(own.rows === client.rows && typeof asDeclared === 'function');
});
