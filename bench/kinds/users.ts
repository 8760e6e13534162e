import type autocannon from 'autocannon';
import { load, warmUp } from '../load.ts';
import { startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Kind } from './kind.ts';

/** The life cycle of a user, repeated: POST, GET, PATCH, PUT, DELETE. Counts requests. */
export interface UsersScenario {
  readonly kind: 'users';
  readonly connections: number;
}

interface Step {
  readonly method: 'POST' | 'GET' | 'PATCH' | 'PUT' | 'DELETE';
  readonly body?: object;
}

const PATH = '/api/users';
const LIFE: readonly Step[] = [
  { method: 'POST', body: { name: 'Ada', email: 'ada@example.org' } },
  { method: 'GET' },
  { method: 'PATCH', body: { name: 'Ada Lovelace' } },
  { method: 'PUT', body: { name: 'Ada', email: 'ada@example.net' } },
  { method: 'DELETE' },
];
const HEADERS = { 'content-type': 'application/json' };

export const users: Kind<UsersScenario> = {
  async check(job) {
    const url = urlOf(job);
    const answers: string[] = [];
    let id = '';
    for (const { method, body } of LIFE) {
      const response = await fetch(url + (method === 'POST' ? PATH : `${PATH}/${id}`), {
        method,
        ...(body && { headers: HEADERS, body: JSON.stringify(body) }),
      });
      const answer = (await response.json()) as { id: string; createdAt?: string; updatedAt?: string };
      ({ id } = answer);
      const shown = {
        ...answer,
        id: 'id',
        createdAt: typeof answer.createdAt,
        updatedAt: typeof answer.updatedAt,
      };
      answers.push(`${method} ${response.status} ${JSON.stringify(shown)}`);
    }
    const { connections } = job.scenario;
    await load({ url, connections, until: warmUp(job.effort), requests: lives() });
    return { text: answers.join('\n'), rows: 0, bytes: 0 };
  },

  async measure(job) {
    const endUsage = startUsage(pidsOf(job));
    const { connections } = job.scenario;
    const done = await load({ url: urlOf(job), connections, until: job.effort, requests: lives() });
    return { seconds: done.seconds, count: done.requests, usage: endUsage(), latency: done.latency };
  },
};

/** Each connection keeps the id of its own user, taken from the answer to its POST. */
function lives(): autocannon.Request[] {
  return LIFE.map(({ method, body }): autocannon.Request => {
    const request = { method, ...(body && { headers: HEADERS, body: JSON.stringify(body) }) };
    if (method === 'POST') return { ...request, path: PATH, onResponse: keepId };
    return {
      ...request,
      setupRequest: (asked, context) => ({ ...asked, path: `${PATH}/${(context as { id: string }).id}` }),
    };
  });
}

function keepId(_status: number, body: string, context: object): void {
  Object.assign(context, { id: (JSON.parse(body) as { id: string }).id });
}
