import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { database } from './items.ts';

interface StoredUser {
  _id: string;
  name: string;
  email: string;
  createdAt: Date;
  updatedAt: Date;
}

type Body = Pick<StoredUser, 'name' | 'email'>;
interface OneUser {
  Params: { id: string };
  Body: Body;
}

const name = { type: 'string', minLength: 1, maxLength: 200 };
const email = { type: 'string', maxLength: 320, pattern: '^[^@]+@[^@]+$' };
const whole = { type: 'object', required: ['name', 'email'], properties: { name, email } };
const part = { type: 'object', minProperties: 1, properties: { name, email } };
const time = { type: 'string', format: 'date-time' };
const user = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    name: { type: 'string' },
    email: { type: 'string' },
    createdAt: time,
    updatedAt: time,
  },
};
const answers = { '2xx': user };
const newest = { returnDocument: 'after' } as const;

/** Fastify answers with the statusCode of an error. */
const MISSING = Object.assign(new Error('no such user'), { statusCode: 404 });

const shown = ({ _id, ...rest }: StoredUser) => ({ id: _id, ...rest });

/**
 * Users with Fastify and the driver: validated, one command for each request, acknowledged by a majority as
 * is the default of replica sets.
 */
export function userRoutes(app: FastifyInstance, _options: object, done: () => void): void {
  const users = database.collection<StoredUser>('peer-users');

  app.post<{ Body: Body }>(
    '/api/users',
    { schema: { body: whole, response: answers } },
    async (request, reply) => {
      const now = new Date();
      const made = { _id: randomUUID(), ...request.body, createdAt: now, updatedAt: now };
      await users.insertOne(made);
      return reply.code(201).send(shown(made));
    },
  );
  app.get<OneUser>('/api/users/:id', { schema: { response: answers } }, async ({ params }) => {
    const found = await users.findOne({ _id: params.id });
    if (!found) throw MISSING;
    return shown(found);
  });
  app.put<OneUser>(
    '/api/users/:id',
    { schema: { body: whole, response: answers } },
    async ({ params, body }) => {
      const now = new Date();
      const change = { $set: { ...body, updatedAt: now }, $setOnInsert: { createdAt: now } };
      const put = await users.findOneAndUpdate({ _id: params.id }, change, { ...newest, upsert: true });
      return put && shown(put);
    },
  );
  app.patch<OneUser>(
    '/api/users/:id',
    { schema: { body: part, response: answers } },
    async ({ params, body }) => {
      const change = { $set: { ...body, updatedAt: new Date() } };
      const patched = await users.findOneAndUpdate({ _id: params.id }, change, newest);
      if (!patched) throw MISSING;
      return shown(patched);
    },
  );
  app.delete<OneUser>('/api/users/:id', async ({ params }) => {
    const { deletedCount } = await users.deleteOne({ _id: params.id });
    if (deletedCount === 0) throw MISSING;
    return { id: params.id, deleted: true };
  });
  done();
}
