import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '../../src/access/admission.ts';
import { dispatch } from '../../src/http/dispatch.ts';
import { route } from '../../src/http/route.ts';
import { createRouter } from '../../src/http/router.ts';
import { requestOf } from '../support/engine/engines.ts';
import { sinkTo } from '../support/process/app.ts';

test('the slot of a download is free when its client can have the last byte', async () => {
  const router = createRouter([
    route({
      method: 'GET',
      path: '/file',
      access: 'open',
      cost: 'download',
      id: 'getFile',
      tag: 'Server',
      summary: 'A file that is never closed',
      answers: { 200: { description: 'The file' } },
      handler: () => ({
        status: 200,
        headers: {},
        body: {
          kind: 'file',
          length: 3,
          write: async (sink) => {
            await sink.write(Buffer.from('ab'));
            await sink.write(Buffer.from('c'));
            await new Promise(() => undefined);
          },
        },
      }),
    }),
  ]);
  const request = requestOf({ path: '/file' });
  const client: Client = { name: 'a', hasKey: false, key: null, owner: 'a' };
  let held = 0;
  const { body } = await dispatch(request, router.find(request), client, {
    router,
    admissions: {
      acquire: () => {
        held++;
        return () => void (held = 0);
      },
      idle: (_, until) => until(),
      mayGoOn: () => true,
    },
    coded: () => ({}),
  });
  assert.ok(body.kind === 'stream');
  const seen: string[] = [];
  void body.run(sinkTo((chunk) => void seen.push(`${Buffer.from(chunk).toString()} with ${held}`)));
  await new Promise(setImmediate);
  assert.deepEqual(seen, ['ab with 1', 'c with 0']);
});
