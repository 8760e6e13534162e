/**
 * node --import tsx test/support/access/address-flood.ts COUNT: lets COUNT addresses send one request each, and
 * prints the growth of RSS in bytes. It is a process of its own, because memory freed by another test would
 * be reused first.
 */
import assert from 'node:assert/strict';
import { createMemoryLimiter } from '../../../src/access/limiter-memory.ts';

const count = Number(process.argv[2]);
const limiter = createMemoryLimiter({ now: () => 0 });
const take = (client: string) => limiter.take(client, { limit: 60_000, windowSeconds: 60 });
const address = (i: number) => [10, i >> 16, (i >> 8) & 255, i & 255].join('.');
const before = process.memoryUsage.rss();
for (let i = 0; i < count; i++) assert.equal(take(address(i)).remaining, 59_999);
const bytes = process.memoryUsage.rss() - before;
for (let i = 0; i < count; i += 97) assert.equal(take(address(i)).remaining, 59_998);
console.log(bytes);
