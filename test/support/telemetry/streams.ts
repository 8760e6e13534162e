import assert from 'node:assert/strict';
import type { OpenStream } from '../../../src/http/open-streams.ts';
import { jsonOf } from '../answers.ts';

/** What a server lists of its open streams. */
export interface StreamList {
  readonly data: readonly OpenStream[];
  readonly mayCut: boolean;
}

/** Asks for the open streams until they are as `is` wants them. `ask`: sends one request. */
export async function untilStreams(
  ask: () => Promise<Response>,
  is: (streams: StreamList['data']) => boolean,
): Promise<StreamList> {
  const end = performance.now() + 20_000;
  for (;;) {
    const list = (await jsonOf(ask())) as StreamList;
    if (is(list.data)) return list;
    assert.ok(performance.now() < end, `the streams are ${JSON.stringify(list)}`);
  }
}
