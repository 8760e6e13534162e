import { PROBLEMS } from '../errors.ts';
import type { Reply } from './edge.ts';

const { status, title } = PROBLEMS.internal;
const PROBLEM = Buffer.from(JSON.stringify({ type: '/problems/internal', title, status, code: 'internal' }));

/** The engine's own reply when the application failed to produce one. It does not reveal the reason. */
export function failure(): Reply {
  return {
    status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store' },
    body: { kind: 'bytes', bytes: PROBLEM },
  };
}
