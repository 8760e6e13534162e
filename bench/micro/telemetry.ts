/**
 * The cost of counting and logging a request, compared with the cost of a page: node --import tsx
 * bench/micro/telemetry.ts [turns]
 *
 * Log lines take the path of a server's log: through pino, asynchronously, here to /dev/null.
 */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { newNotes, type Ending, type Request } from '../../src/engine/edge.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { requestLog } from '../../src/telemetry/request-log.ts';
import { printMachine, takeTurns } from './turns.ts';

const turns = Number(process.argv[2]) || 20_000; // --micro is not a number
const metrics = new Metrics();
metrics.watch({
  openStreams: () => 0,
  runningExports: () => 0,
  editions: () => new Map(),
  exports: () => ({}),
  overloaded: () => false,
  transcodedMs: () => 0,
  settingsFaults: () => ({}),
});
const destination = pino.destination({ dest: '/dev/null', sync: false, maxWrite: 4096, maxLength: 2 ** 24 });
const log = requestLog(pino(destination));
const silent = requestLog(pino({ level: 'warn' }, destination));
const read = metrics.storeOperation('read');

const request: Request = {
  method: 'GET',
  path: '/items',
  query: 'limit=100&sort=price_asc',
  headers: { host: 'localhost', 'x-request-id': '6b1f0b9e-2f5c-4d0e-9b57-0d1f6c1c9a11' },
  address: '192.0.2.7',
  signal: new AbortController().signal,
  notes: { ...newNotes(), route: '/items', resource: 'items', client: '192.0.2.7', rows: 100 },
  body: () => Promise.resolve(new Uint8Array(0)),
};
const ending: Ending = { status: 200, bytes: 25_000, cut: null };

function count(): number {
  metrics.began();
  read(0.3, false);
  metrics.batchRead(100);
  metrics.finished(request, ending, 0.7);
  return 1;
}

printMachine();
takeTurns(
  {
    'metrics of a page': { work: count, expected: 1 },
    'its line in the log': { work: () => (log(request, ending, 0.7), 1), expected: 1 },
    'the same with LOG_LEVEL=warn': { work: () => (silent(request, ending, 0.7), 1), expected: 1 },
  },
  turns,
);
assert.ok((await metrics.values()).length > 0);
destination.end();
