import { randomUUID } from 'node:crypto';
import type { Client } from '../access/admission.ts';
import { Registry } from '../base/registry.ts';
import type { Reply, Request } from '../engine/edge.ts';
import { CutByOperatorError } from '../engine/stall-timer.ts';
import { aroundWrites } from './reply.ts';

/** What a stream does now. `waiting`: its client takes nothing. `following`: it sends what changes, as it changes. */
export const STREAM_STATES = ['sending', 'waiting', 'following'] as const;

/** An answer that holds a stream slot and is being sent. It names no key, no query and no address. */
export interface OpenStream {
  readonly id: string;
  /** The name of its key, as the limits name it. Empty: the server requires none. */
  readonly client: string;
  readonly route: string;
  /** Empty: the path belongs to none. */
  readonly resource: string;
  readonly type: string;
  /** When it began (RFC 3339). */
  readonly since: string;
  /** Rows in the answer so far. */
  readonly rows: number;
  /** Bytes handed to the connection so far, in the form sent (compressed). */
  readonly bytes: number;
  readonly state: (typeof STREAM_STATES)[number];
}

/** A query with `follow=true`, in which no name is written in another way. */
const FOLLOW = /(^|&)follow=true(&|$)/;

/** The streams that this process is sending. */
export class OpenStreams {
  readonly #open = new Registry<Stream>();

  /** The reply, listed while its body is sent. A cut rejects beside the body, so the engine cuts the connection. */
  listed(reply: Reply, request: Request, client: Client): Reply {
    const { cost } = request.notes;
    if (reply.body.kind !== 'stream' || (cost !== 'stream' && cost !== 'download')) return reply;
    const stream = new Stream(request, client, reply.headers['content-type'] ?? '');
    const written = aroundWrites(reply, (write, bytes) => stream.around(write, bytes));
    if (written.body.kind !== 'stream') return written;
    const { body } = written;
    const run: typeof body.run = async (sink) => {
      const place = this.#open.add(stream);
      try {
        await Promise.race([body.run(sink), stream.cutting]);
      } finally {
        this.#open.remove(place, stream);
      }
    };
    return { ...written, body: { ...body, run } };
  }

  list(): OpenStream[] {
    return this.#open.all().map((stream) => stream.now());
  }

  /** Cuts a stream. Returns what it was then; null: this process sends none of this id. */
  cut(id: string): OpenStream | null {
    const stream = this.#open.all().find((one) => one.id === id);
    if (!stream) return null;
    const last = stream.now();
    stream.cut();
    return last;
  }
}

class Stream {
  readonly id = randomUUID();
  /** Rejects when an operator cuts the stream. */
  readonly cutting: Promise<never>;
  cut: () => void = () => undefined;
  readonly #request: Request;
  readonly #client: string;
  readonly #type: string;
  readonly #since = new Date();
  #bytes = 0;
  #waits = 0;

  constructor(request: Request, { key, name }: Client, type: string) {
    this.#request = request;
    this.#client = key === null ? '' : name;
    this.#type = type;
    this.cutting = new Promise((_resolve, reject) => {
      this.cut = () => reject(new CutByOperatorError());
    });
  }

  around(write: () => void | Promise<void>, bytes: number): void | Promise<void> {
    this.#bytes += bytes;
    const taken = write();
    if (!taken) return;
    this.#waits++;
    return taken.finally(() => this.#waits--);
  }

  now(): OpenStream {
    const { notes, query } = this.#request;
    const follows = FOLLOW.test(query) || notes.route?.endsWith('/changes') === true;
    return {
      id: this.id,
      client: this.#client,
      route: notes.route ?? '',
      resource: notes.exported?.resource ?? notes.resource ?? '',
      type: this.#type,
      since: this.#since.toISOString(),
      rows: notes.rows,
      bytes: this.#bytes,
      state: this.#waits > 0 ? 'waiting' : follows ? 'following' : 'sending',
    };
  }
}
