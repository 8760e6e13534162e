import type { User } from '../../../src/users/user.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body parsed as JSON. undefined when there is none. */
  readonly json: unknown;
}

export interface Sending {
  /** The body. A string is sent as it is, any other value as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client of the users of a server. */
export interface Users {
  send(method: string, path: string, sending?: Sending): Promise<Answer>;
  /** Sends a PUT that must succeed. */
  put(id: string, body: unknown): Promise<User & { readonly etag: string }>;
  get(id: string): Promise<Answer>;
}

export const PATH = '/api/users';

/** A client of the users of the server at this URL. */
export function usersAt(url: string): Users {
  const send: Users['send'] = async (method, path, { body, headers = {} } = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  };
  return {
    send,
    get: (id) => send('GET', `${PATH}/${id}`),
    put: async (id, body) => {
      const answer = await send('PUT', `${PATH}/${id}`, { body });
      if (answer.status !== 200 && answer.status !== 201) throw new Error(answer.text);
      return { ...(answer.json as User), etag: answer.headers.get('etag') ?? '' };
    },
  };
}

function parsed(text: string): unknown {
  return text === '' ? undefined : (JSON.parse(text) as unknown);
}

export function codeOf({ json }: Answer): string | undefined {
  return (json as { code?: string } | undefined)?.code;
}
