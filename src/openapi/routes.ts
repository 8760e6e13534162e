import { json } from '../http/reply.ts';
import { JSON_TYPE, jsonAnswer, notModified, type Route } from '../http/route.ts';
import { fingerprint } from '../rows/fingerprint.ts';
import { isPublicName, mayUse } from '../http/permit.ts';
import type { Client } from '../access/admission.ts';
import { createDocument, type DocumentOptions } from './document.ts';

/** The document, made of these routes. */
interface Made {
  readonly of: readonly Route[];
  readonly text: string;
  readonly etag: string;
}

/**
 * GET /openapi.json: the document of the routes that a client has, of those that `following` resolves with at the moment,
 * and of this one. It is created on the first request, and again when `following` resolves with another array. Each key
 * sees what it may use.
 */
export function getOpenApi(
  routesFor: (client: Client) => readonly Route[],
  following: (client: Client, signal: AbortSignal) => Promise<readonly Route[]>,
  options: DocumentOptions,
): Route {
  /** By the rights of the clients that may see them. */
  const made = new Map<string, Made>();
  const make = (of: readonly Route[], client: Client): Made => {
    const shown = [...routesFor(client), ...of, own].filter((one) => isShown(client, one));
    const text = JSON.stringify(createDocument(shown, options));
    return { of, text, etag: `"${fingerprint(Buffer.from(text))}"` };
  };
  const own: Route = {
    method: 'GET',
    path: '/openapi.json',
    access: 'open',
    cost: 'page',
    id: 'getOpenApi',
    tag: 'Server',
    summary: 'Get the OpenAPI document',
    headers: ['If-None-Match'],
    produces: [JSON_TYPE],
    answers: {
      200: jsonAnswer('This OpenAPI 3.1 document', { type: 'object', description: 'an OpenAPI document' }, [
        'ETag',
        'Cache-Control',
      ]),
      304: notModified('this document'),
    },
    problems: ['invalid-header', 'precondition-failed'],
    handler: async ({ request, client }) => {
      const of = await following(client, request.signal);
      const rights = client.key?.rights.hash ?? NO_KEY;
      if (made.size >= MOST_KEPT) made.clear();
      let document = made.get(rights);
      if (document?.of !== of) made.set(rights, (document = make(of, client)));
      return json(200, document.text, { etag: document.etag, 'cache-control': 'no-cache' });
    },
  };
  return own;
}

/** What stands for no key among the hashes of rights. */
const NO_KEY = '-';
/** The most documents that are kept. */
const MOST_KEPT = 100;

/**
 * Whether the document shows a route to a client. Where keys are required, one without a key sees no declared resource:
 * their names and fields are for keys.
 */
function isShown(client: Client, route: Route): boolean {
  if (client.key !== null) return mayUse(client, route);
  return !client.hasKey || isPublicName(route);
}
